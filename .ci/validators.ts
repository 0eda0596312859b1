// Writes src/schema/files.gen.ts and params.gen.ts, which are built and not committed: what ajv makes of our own schemas, so that no
// start of the daemon or the command line has to load a compiler and wait for it.
import { readFileSync, writeFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import standalone from 'ajv/dist/standalone/index.js'

const folder = new URL('../src/schema/', import.meta.url)
const header = `// @ts-nocheck
// Written by .ci/validators.ts from the JSON Schemas: a check of each.
import { createRequire } from 'node:module'
import type { Check } from './problem.ts'

// Two functions of ajv: the length of a text in letters, and whether two values are the same.
const require = createRequire(import.meta.url)
`

// The schemas are our own: they are judged by the meta-schema in the tests. What is wrong is said in words of ours.
const kinds = ['config', 'project', 'profile', 'declaration', 'assertions'] as const
const methods = Object.keys(schemaOf('control').properties ?? {})
// Of a file all is said that is wrong with it; of what a host sends the first thing: it could be wrong a million times.
const [ofFiles, ofParams] = [compiler(true), compiler(false)]
write(ofFiles, 'files.gen.ts', 'checksOfFiles', new Map(kinds.map((kind) => [kind, `${kind}.schema.json`])))
const pointer = (method: string): string => `#/properties/${method.replaceAll('/', '~1')}`
write(
  ofParams,
  'params.gen.ts',
  'checksOfParams',
  new Map(methods.map((it) => [it, `control.schema.json${pointer(it)}`])),
)

function compiler(allErrors: boolean): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors,
    verbose: true,
    messages: false,
    useDefaults: true,
    allowUnionTypes: true,
    strict: true,
    validateSchema: false,
    code: { source: true, esm: true, lines: true },
  })
  ajv.addVocabulary(['expected', 'mend'])
  for (const kind of [...kinds, 'control']) ajv.addSchema(schemaOf(kind))
  return ajv
}

/** One file of checks, under the names that they are asked for by. */
function write(ajv: Ajv2020, file: string, name: string, references: ReadonlyMap<string, string>): void {
  const numbered = [...references.values()].map((reference, at) => [`check${at}`, reference])
  const code = standalone.default(ajv, Object.fromEntries(numbered))
  const rows = [...references.keys()].map((key, at) => `  ${JSON.stringify(key)}: check${at},\n`)
  const table = `export const ${name}: Readonly<Record<string, Check>> = {\n${rows.join('')}}\n`
  const parts = [header, inAscii(code.replaceAll(/^export (?=const check)/gm, '')), table]
  writeFileSync(new URL(file, folder), parts.join('\n'))
}

function schemaOf(kind: string): { properties?: object } {
  return JSON.parse(readFileSync(new URL(`${kind}.schema.json`, folder), 'utf8')) as object
}

/** One letter beyond Latin would have the whole text kept in two bytes a letter. */
function inAscii(text: string): string {
  return text.replaceAll(/[^\n -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
