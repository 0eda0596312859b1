// `sallyport audit`: what was decided and done, by whom, and whether the record of it is whole.
import type { Command } from 'commander'
import { allPages } from '../client/audit-pages.ts'
import { SallyportError } from '../errors.ts'
import { visibleJson } from '../lib/visible-json.ts'
import type { AuditPage, AuditQuery, AuditRecord } from '../rpc/governed.ts'
import { registerExport } from './audit-export.ts'
import { registerVerify } from './audit-verify.ts'
import { asking } from './journal-asked.ts'
import { type HereOptions, isHere, offline } from './journal-here.ts'
import { wholeNumber } from './number.ts'
import { hint, paint, printFields, printJson, printPiece, visible } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'
import { wordFor } from './word.ts'

interface TailOptions extends ReachOptions, HereOptions {
  readonly lines: number
  readonly follow?: boolean
  readonly server?: string
  readonly type?: string
  readonly call?: string
}

export function registerAudit(program: Command): void {
  const audit = program.command('audit').description('read, verify and export the journal')
  registerTail(audit)
  registerShow(audit)
  registerVerify(audit)
  registerExport(audit)
}

function registerTail(audit: Command): void {
  offline(reaching(audit.command('tail', { isDefault: true })), 'read')
    .description('show the last records')
    .option('-n, --lines <count>', 'most records of the past, up to 1000', linesFrom, 20)
    .option('-f, --follow', 'go on with records as they come')
    .option('--server <name>', 'only records about this server', wordFor('--server'))
    .option(
      '--type <type>',
      'only records of this type; call.* is every type that begins so',
      wordFor('--type'),
    )
    .option('--call <id>', 'only records of this call', wordFor('--call'))
    .action((options: TailOptions) => {
      const { lines, follow, server, type, call } = options
      const query = {
        limit: lines,
        ...(server === undefined ? {} : { server }),
        ...(type === undefined ? {} : { type }),
        ...(call === undefined ? {} : { call }),
      }
      return follow === true ? followed(query, options) : tail(query, options)
    })
}

async function tail(query: AuditQuery, options: TailOptions): Promise<void> {
  await asking(options, async ({ ask, signal }) => {
    const result = await allPages(await ask(query), query, ask)
    if (options.json === true) printJson(result)
    else for (const record of result.records) await printPiece(lineOf(record, options), { signal })
    if (result.records.length === 0) hint('the journal has no such record')
  })
}

async function followed(query: AuditQuery, options: TailOptions): Promise<void> {
  if (isHere(options))
    throw new SallyportError(
      'ERR_USAGE',
      'audit tail: only the daemon has records as they come, so --follow goes with neither --state nor --run',
    )
  await reach(options, 'operator', async ({ client, signal }) => {
    for await (const record of client.audit({ ...query, signal }))
      await printPiece(lineOf(record, options), { signal })
  })
}

function registerShow(audit: Command): void {
  offline(reaching(audit.command('show')), 'read')
    .description('show one record, or all records of one call, whole')
    .argument('<which>', 'number of a record, or id of a call')
    .action((which: string, options: ReachOptions & HereOptions) => {
      const query = which.startsWith('c-') ? { call: which, limit: 1000 } : { seq: numberOf(which), limit: 1 }
      return asking(options, async ({ ask }) => {
        const result = await allPages(await ask(query), query, ask)
        if (result.records.length === 0)
          throw new SallyportError('ERR_RECORD_NOT_FOUND', `the journal has no record of ${which}`)
        if (options.json === true) printJson(result)
        else result.records.forEach((record) => printWhole(record, result.lacking))
      })
    })
}

function lineOf(record: AuditRecord, { json }: ReachOptions): string {
  if (json === true) return `${visibleJson(record)}\n`
  const { seq, at, type, body } = record as { readonly [Key in keyof AuditRecord]: unknown } // as who changed it left it
  const fields = Object.entries({ ...(body as object) }).flatMap(([key, value]) => {
    const words = told.has(key) ? wordsOf(key, value) : null
    return words === null ? [] : [`${key}=${words}`]
  })
  const line = visible(fields.join(' '))
  const [when, number, what] = [at, seq, type].map((said) => visible(String(said)))
  return `${paint('dim', `${when?.slice(0, 23)} #${number}`)} ${paint('bold', what ?? '')} ${line}\n`
}

/** A value in one line: of a list the names in it, as many as can be taken in; null where there is nothing to say. */
function wordsOf(key: string, value: unknown): string | null {
  if (value === null || value === '') return null
  if (typeof value !== 'object') return word(value)
  const list: readonly unknown[] = Array.isArray(value) ? value : key === 'became' ? Object.keys(value) : []
  const names = list.map(nameIn).filter((name) => name !== null)
  if (names.length === 0) return null
  const more = names.length > mostNames ? [`and ${names.length - mostNames} more`] : []
  return [...names.slice(0, mostNames), ...more].map(word).join(',')
}

const mostNames = 8

/** Itself, or of an accepted tool its name. */
function nameIn(one: unknown): string | null {
  const name: unknown =
    typeof one === 'string' ? one : Reflect.get(Object(Reflect.get(Object(one), 'declaration')), 'name')
  return typeof name === 'string' ? name : null
}

/** What others wrote must not read as a further field: only a word of plain characters stands unquoted. */
const word = (value: unknown): string =>
  typeof value === 'string' && /^[\w@#/:.*-]+$/.test(value) ? value : JSON.stringify(value)

/** What a line of the tail says of a record's body, of much more. */
const told: ReadonlySet<string> = new Set([
  'identity',
  'server',
  'subject',
  'tool',
  'call',
  'host',
  'port',
  'credential',
  'credentials',
  'count',
  'principal',
  'by',
  'rule',
  'trust',
  'approval',
  'outcome',
  'duration_ms',
  'code',
  'failure',
  'reason',
  'detail',
  'scope',
  'name',
  'id',
  'ids',
  'tools',
  'declarationVersion',
  'acceptedBy',
  'became',
  'mode',
  'added',
  'changed',
  'removed',
  'durability',
])

function printWhole(
  { seq, at, type, daemon, segment, hash, prev, body }: AuditRecord,
  lacking: AuditPage['lacking'],
): void {
  printFields([
    ['record', `${seq} ${type}`],
    ['at', at],
    ['daemon', `${daemon}, segment ${segment}`],
    ...(hash === null || prev === null
      ? []
      : ([
          ['hash', hash],
          ['prev', prev],
        ] as const)),
    ...Object.entries({ ...(body as object) }).map(
      ([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)] as const,
    ),
    ...lacking
      .filter((one) => one.seq === seq)
      .map(({ member, detail }) => [`${member} lacks`, detail] as const),
  ])
  process.stdout.write('\n')
}

function linesFrom(text: string): number {
  const value = wholeNumber(text, 1, 1000)
  if (value !== null) return value
  throw new SallyportError(
    'ERR_USAGE',
    `--lines: got ${JSON.stringify(text)}, expected a whole number from 1 to 1000`,
  )
}

function numberOf(which: string): number {
  if (/^\d{1,15}$/.test(which)) return Number(which)
  throw new SallyportError(
    'ERR_USAGE',
    `audit show: got ${which}, expected the number of a record, or the id of a call, which begins with c-`,
  )
}
