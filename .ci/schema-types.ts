// Writes src/schema/types.gen.ts from the JSON Schemas; with --check it only says whether that file is fresh.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { compile, type JSONSchema } from 'json-schema-to-typescript'

const folder = new URL('../src/schema/', import.meta.url)
const target = fileURLToPath(new URL('types.gen.ts', folder))
const kinds = ['config', 'project', 'profile', 'declaration', 'assertions', 'control'] as const

const parts = await Promise.all(kinds.map(typesOf))
const header =
  '// Generated from the JSON Schemas by .ci/schema-types.ts: the shape of a value after validation, defaults filled in.'
const source = [header, ...parts].join('\n')

if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== source) {
    process.stderr.write('src/schema/types.gen.ts is stale: run `npm run build:schema` and commit it\n')
    process.exitCode = 1
  }
} else if (!sameAs(source)) {
  writeFileSync(target, source)
}

async function typesOf(kind: (typeof kinds)[number]): Promise<string> {
  const schema: unknown = JSON.parse(readFileSync(new URL(`${kind}.schema.json`, folder), 'utf8'))
  const prepared = inlined(schema, definitionsOf(schema)) as JSONSchema
  return await compile(prepared, kind, {
    bannerComment: '',
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    style: { printWidth: 110, singleQuote: true, semi: false, trailingComma: 'all' },
    cwd: fileURLToPath(folder),
  })
}

function definitionsOf(schema: unknown): Readonly<Record<string, unknown>> {
  return { ...(schema as { $defs?: Record<string, unknown> }).$defs }
}

/** Definitions in place of references to them, and a property with a default as one that is always there. */
function inlined(node: unknown, definitions: Readonly<Record<string, unknown>>): unknown {
  if (Array.isArray(node)) return node.map((item) => inlined(item, definitions))
  if (typeof node !== 'object' || node === null) return node
  const { $ref, $defs: _, $id: __, ...own } = node as Record<string, unknown>
  const referred = typeof $ref === 'string' ? definitions[$ref.replace('#/$defs/', '')] : {}
  const whole: Record<string, unknown> = { ...(referred as object), ...own }
  const result = Object.fromEntries(
    Object.entries(whole).map(([key, value]) => [
      key,
      key === 'default' ? value : inlined(value, definitions),
    ]),
  )
  const properties = result['properties'] as Record<string, { default?: unknown }> | undefined
  if (properties === undefined) return result
  const certain = Object.keys(properties).filter((key) => properties[key]?.default !== undefined)
  return {
    ...result,
    required: [...new Set([...((result['required'] as string[] | undefined) ?? []), ...certain])],
  }
}

function sameAs(text: string): boolean {
  try {
    return readFileSync(target, 'utf8') === text
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
    throw error
  }
}
