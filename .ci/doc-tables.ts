// The tables of docs/ that repeat what the code says: `node .ci/doc-tables.ts` rewrites them between their markers.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { catalogue } from '../src/errors.ts'

const root = new URL('../', import.meta.url)
const docs = new URL('docs/', root)

/** The part of JSON Schema that a row shows. */
interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly $defs?: Readonly<Record<string, Schema>>
}

/** Name of a table -> its text; `<!-- name -->` and `<!-- /name -->` stand around it in a document. */
export const tables: Readonly<Record<string, () => string>> = {
  errors: () =>
    table(
      ['code', 'exit', 'JSON-RPC', 'failure', 'retryable', 'meaning'],
      Object.entries(catalogue).map(([code, { exit, rpc, failure, retryable, meaning }]) => [
        `\`${code}\``,
        String(exit),
        String(rpc),
        failure ?? '',
        retryable ? 'yes' : '',
        meaning,
      ]),
    ),
  configuration: () => schemaTable('config'),
  profile: () => schemaTable('profile'),
  project: () => schemaTable('project'),
}

/** Returns `text` with every marked table made anew. */
export const refreshed = (text: string): string =>
  Object.entries(tables).reduce(
    (document, [name, make]) =>
      document.replace(
        new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`),
        (_, open: string, close: string) => `${open}\n${make()}\n${close}`,
      ),
    text,
  )

if (import.meta.main) {
  for (const name of readdirSync(docs).filter((it) => it.endsWith('.md'))) {
    const text = readFileSync(new URL(name, docs), 'utf8')
    if (refreshed(text) === text) continue
    if (process.argv.includes('--check')) {
      process.stderr.write(`docs/${name} is stale: run \`npm run docs\` and commit it\n`)
      process.exitCode = 1
    } else writeFileSync(new URL(name, docs), refreshed(text))
  }
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('')
}

function schemaTable(kind: string): string {
  const schema = JSON.parse(readFileSync(new URL(`src/schema/${kind}.schema.json`, root), 'utf8')) as Schema
  return table(['key', 'value', 'default', 'meaning'], [...rowsOf(schema, '', schema)])
}

/** Yields a row for each key, depth first; `*` stands for a name that people choose, `[]` for an entry of a list. */
function* rowsOf(schema: Schema, path: string, whole: Schema): Generator<readonly string[]> {
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (name === '$schema') continue
    const it = resolved(property, whole)
    const key = `${path}${name}`
    yield [`\`${key}\``, valuesOf(it), defaultOf(it), it.description ?? '']
    for (const [suffix, inner] of innerOf(it, whole)) yield* rowsOf(inner, `${key}${suffix}.`, whole)
  }
}

function innerOf(schema: Schema, whole: Schema): readonly (readonly [string, Schema])[] {
  const { additionalProperties, items } = schema
  const forms = (it: Schema): readonly Schema[] =>
    [it, ...(it.oneOf ?? it.anyOf ?? [])].map((x) => resolved(x, whole))
  return [
    ...forms(schema).map((it) => ['', it] as const),
    ...(typeof additionalProperties === 'object'
      ? forms(resolved(additionalProperties, whole)).map((it) => ['.*', it] as const)
      : []),
    ...(items ? forms(resolved(items, whole)).map((it) => ['[]', it] as const) : []),
  ].filter(([, it]) => it.properties !== undefined)
}

function resolved(schema: Schema, whole: Schema): Schema {
  const name = schema.$ref?.replace('#/$defs/', '')
  return name === undefined ? schema : { ...resolved(whole.$defs?.[name] ?? {}, whole), ...schema }
}

function valuesOf(schema: Schema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(' | ')
  if (schema.oneOf ?? schema.anyOf) return 'several forms'
  return [schema.type ?? 'any'].flat().join(' or ')
}

function defaultOf(schema: Schema): string {
  const isFilledFromBelow = JSON.stringify(schema.default) === '{}'
  return schema.default === undefined || isFilledFromBelow ? '' : `\`${JSON.stringify(schema.default)}\``
}
