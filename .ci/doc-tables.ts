// The tables of documents that repeat what the code says: `npm run docs` rewrites them between their markers.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { shippedFolder } from '../src/config/profile-layers.ts'
import { loadProfile } from '../src/config/profile.ts'
import { catalogue } from '../src/errors.ts'
import { catalogue as probes } from '../src/verify/catalogue.ts'
import { findings } from '../test/chaos/seeds.ts'
import { faultRows } from '../test/support/fault-tests.ts'
import { type ControlId, controlOf, controls } from '../src/verify/arms/controls.ts'

const root = new URL('../', import.meta.url)

/** The documents that may hold such tables, relative to the repository. */
export const documents: readonly string[] = [
  'README.md',
  'sandbox/README.md',
  'profiles/README.md',
  ...readdirSync(new URL('docs/', root)).map((name) => `docs/${name}`),
].filter((path) => path.endsWith('.md') && existsSync(new URL(path, root)))

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
const tables: Readonly<Record<string, () => string | Promise<string>>> = {
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
  profiles: profilesTable,
  faults: () =>
    table(
      ['', 'fault', 'shown by'],
      faultRows.map(({ number, fault, tests }) => [String(number), fault, shownBy(tests)]),
    ),
  findings: () =>
    table(
      ['seed', 'as', 'found', 'held by'],
      findings.map(({ seed, as, found, tests }) => [
        seed === null ? '–' : String(seed),
        as,
        found,
        shownBy(tests),
      ]),
    ),
  controls: () =>
    table(
      ['control', 'what it is', 'probes', 'without it'],
      (Object.keys(controls) as ControlId[]).map((id) => {
        const { what, arm } = controlOf(id)
        const mustRefuse = (arm.refusal?.({ network: { mode: 'none' } }) ?? null) !== null
        const guards = probes.filter(({ control }) => control === id).map(({ number }) => number)
        return [`\`${id}\``, what, guards.join(', '), mustRefuse ? 'nothing is started' : 'they go red']
      }),
    ),
}

/** Returns `text` with every marked table made anew. */
export async function refreshed(text: string): Promise<string> {
  let document = text
  for (const [name, make] of Object.entries(tables)) {
    const marked = new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`)
    if (!marked.test(document)) continue
    const made = await make()
    document = document.replace(marked, (_, open: string, close: string) => `${open}\n${made}\n${close}`)
  }
  return document
}

if (import.meta.main) {
  for (const path of documents) {
    const text = readFileSync(new URL(path, root), 'utf8')
    const fresh = await refreshed(text)
    if (fresh === text) continue
    if (process.argv.includes('--check')) {
      process.stderr.write(`${path} is stale: run \`npm run docs\` and commit it\n`)
      process.exitCode = 1
    } else writeFileSync(new URL(path, root), fresh)
  }
}

/** Files of tests, each with how their titles begin. */
function shownBy(tests: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(tests)
    .map(([file, titles]) => `\`${file}\`: ${titles.map((title) => `“${title.trim()}”`).join(', ')}`)
    .join('; ')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('')
}

/** One row for each shipped profile, with everything that it extends folded in. */
async function profilesTable(): Promise<string> {
  const names = readdirSync(shippedFolder)
    .filter((name) => name.endsWith('.yaml'))
    .toSorted()
  const profiles = await Promise.all(
    names.map((name) =>
      loadProfile(basename(name, '.yaml'), { folders: [], owners: [process.getuid?.() ?? 0] }),
    ),
  )
  const head = [
    'profile',
    'extends',
    'host files, read-only',
    'mounts',
    'network',
    'memory',
    'processes',
    'scratch',
  ]
  return table(
    head,
    profiles.map(({ name, layers, filesystem, network, limits }) => [
      `\`${name}\``,
      layers[1] === undefined ? '' : `\`${layers[1]}\``,
      filesystem.read.map(({ path }) => `\`${path}\``).join(' '),
      filesystem.mounts,
      network.mode,
      `${limits.memoryBytes / 2 ** 20} MiB`,
      String(limits.pids),
      `${filesystem.tmpBytes / 2 ** 20} MiB`,
    ]),
  )
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
