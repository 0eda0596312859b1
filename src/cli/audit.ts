// `sallyport audit`: what was decided and done, by whom, and whether the record of it is whole.
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import type { Client } from '../client/client.ts'
import { thisHost } from '../config/host.ts'
import { stateDirectory } from '../config/paths.ts'
import { SallyportError } from '../errors.ts'
import { verifyJournal } from '../journal/verify.ts'
import { isMissing } from '../lib/missing.ts'
import type { AuditAnchor, AuditPage, AuditQuery, AuditRecord, AuditVerification } from '../rpc/governed.ts'
import { hint, paint, printFields, printJson, visible, visibleJson } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface TailOptions extends ReachOptions {
  readonly lines: number
  readonly follow?: boolean
  readonly server?: string
  readonly type?: string
  readonly call?: string
}

interface VerifyOptions extends ReachOptions {
  readonly anchor?: AuditAnchor
  readonly state?: string
}

interface ExportOptions extends ReachOptions {
  readonly after: number
  readonly out?: string
}

/** Records that are asked for at once. */
const page = 500

export function registerAudit(program: Command): void {
  const audit = program.command('audit').description('read, verify and export the journal')
  registerTail(audit)
  registerShow(audit)
  registerVerify(audit)
  registerExport(audit)
}

function registerTail(audit: Command): void {
  reaching(audit.command('tail', { isDefault: true }))
    .description('show the last records')
    .option('-n, --lines <count>', 'most records of the past', wholeNumber, 20)
    .option('-f, --follow', 'go on with records as they come')
    .option('--server <name>', 'only records about this server')
    .option('--type <type>', 'only records of this type; call.* is every type that begins so')
    .option('--call <id>', 'only records of this call')
    .action((options: TailOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const { lines, follow, server, type, call } = options
        const query = {
          limit: Math.min(Math.max(lines, 1), 1000),
          ...(server === undefined ? {} : { server }),
          ...(type === undefined ? {} : { type }),
          ...(call === undefined ? {} : { call }),
        }
        if (follow === true)
          for await (const record of client.audit({ ...query, signal })) say(record, options)
        else {
          const result = await queryAll(client, query, signal)
          if (options.json === true) printJson(result)
          else result.records.forEach((record) => say(record, options))
        }
      }),
    )
}

function registerShow(audit: Command): void {
  reaching(audit.command('show'))
    .description('show one record, or all records of one call, whole')
    .argument('<which>', 'number of a record, or id of a call')
    .action((which: string, options: ReachOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const query = which.startsWith('c-')
          ? { call: which, limit: 1000 }
          : { seq: wholeNumber(which), limit: 1 }
        const result = await queryAll(client, query, signal)
        if (result.records.length === 0)
          throw new SallyportError('ERR_RECORD_NOT_FOUND', `the journal has no record of ${which}`)
        if (options.json === true) printJson(result)
        else result.records.forEach(printWhole)
      }),
    )
}

/** The last records that match, however many answers they take. */
async function queryAll(
  client: Client,
  query: AuditQuery & { readonly limit: number },
  signal: AbortSignal,
): Promise<AuditPage> {
  const last = await client.call('audit/query', query, { signal })
  let [records, more] = [last.records, last.more]
  while (more) {
    const [first] = records
    const page = { ...query, limit: query.limit - records.length, before: first?.seq ?? 0 }
    const before = await client.call('audit/query', page, { signal })
    records = [...before.records, ...records]
    more = before.more && before.records.length > 0
  }
  return { records, more, head: last.head }
}

function registerVerify(audit: Command): void {
  reaching(audit.command('verify'))
    .description(
      'check every record against its hash, its place and the key; 4 where one is not what was written',
    )
    .option('--anchor <seq:hash>', 'what an export said, and what must still be there', anchor)
    .option('--state <folder>', 'verify this state folder, without a daemon')
    .action(async (options: VerifyOptions) => {
      const found = options.state === undefined ? await verifyThere(options) : await verifyHere(options)
      if (options.json === true) printJson(found)
      else printVerification(found)
      if (!found.ok) process.exitCode = 4
    })
}

function registerExport(audit: Command): void {
  reaching(audit.command('export'), { reads: false })
    .description('write every record, one JSON object a line, and say the anchor to keep')
    .addOption(new Option('--format <format>', 'ndjson').choices(['ndjson']).default('ndjson'))
    .option('--after <seq>', 'only records behind this number', wholeNumber, 0)
    .option('--out <file>', 'into this file instead of stdout; it must not exist')
    .action((options: ExportOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const last = await exportAll(client, options, signal)
        if (last === null) return hint('there is nothing to export')
        hint(
          `anchor ${last.seq}:${last.hash}\nkeep it elsewhere; sallyport audit verify --anchor checks that all of this is still there`,
        )
      }),
    )
}

async function exportAll(
  client: Client,
  { after, out }: ExportOptions,
  signal: AbortSignal,
): Promise<AuditAnchor | null> {
  await using file = out === undefined ? null : await newFile(out)
  const { head } = await client.call('audit/query', { limit: 1 }, { signal })
  let last: AuditAnchor | null = null
  for (let from = after; from < head.seq; from = last?.seq ?? head.seq) {
    const query = { after: from, before: head.seq + 1, from: 'oldest', limit: page } as const
    const { records } = await client.call('audit/query', query, { signal })
    if (records.length === 0) break
    const text = records.map((record) => `${lineOf(record)}\n`).join('')
    if (file === null) process.stdout.write(text)
    else await file.handle.writeFile(text)
    last = records.at(-1) ?? last
  }
  return last
}

/** The record in the form of the journal: a MAC where it has one. */
const lineOf = ({ mac, ...record }: AuditRecord): string =>
  JSON.stringify(mac === null ? record : { ...record, mac })

async function newFile(path: string) {
  const handle = await open(path, 'wx', 0o600)
  return { handle, [Symbol.asyncDispose]: () => handle.close() }
}

async function verifyThere(options: VerifyOptions): Promise<AuditVerification> {
  try {
    let found: AuditVerification | null = null
    await reach(options, 'operator', async ({ client, signal }) => {
      const asked = options.anchor === undefined ? {} : { anchor: options.anchor }
      found = await client.call('audit/verify', asked, { signal })
    })
    if (found !== null) return found
    throw new SallyportError('ERR_CALL_CANCELLED', 'interrupted')
  } catch (error) {
    if (!(error instanceof SallyportError) || error.code !== 'ERR_DAEMON_UNAVAILABLE') throw error
    hint('no daemon answers; the state folder is verified instead')
    return verifyHere(options)
  }
}

async function verifyHere({ state, anchor: kept }: VerifyOptions): Promise<AuditVerification> {
  const folder = stateDirectory(state, thisHost())
  const key = await readFile(join(folder, 'journal.key')).catch((error: unknown) => {
    if (!isMissing(error)) throw error
    hint(
      `${folder} has no journal.key, so MACs are not checked: whoever could write the journal could rewrite it`,
    )
    return null
  })
  const found = verifyJournal(join(folder, 'journal'), key, { anchor: kept ?? null })
  if (found.segments > 0) return found
  throw new SallyportError(
    'ERR_RECORD_NOT_FOUND',
    `${folder} holds no journal; name the state folder with --state`,
  )
}

function printVerification({
  ok,
  records,
  segments,
  sidecars,
  head,
  begins,
  torn,
  flaw,
  limit,
}: AuditVerification): void {
  const verdict = ok ? paint('green', 'whole') : paint('red', 'NOT what was written')
  process.stdout.write(`the journal is ${verdict}\n`)
  printFields([
    ['records', `${records} in ${segments} segments`],
    ['beside it', `${sidecars} files of evidence`],
    ...(begins.seq === 0
      ? []
      : [['begins', `at anchor ${begins.seq}:${begins.hash}, as journal.keep_days had it`] as const]),
    ['head', `${head.seq}:${head.hash}`],
    ...(flaw === null ? [] : [['flaw', `${flaw.path}:${flaw.line}: ${flaw.kind}: ${flaw.detail}`] as const]),
    ...torn.map(
      (end) =>
        [
          'cut off',
          `segment ${end.segment} at byte ${end.offset}, ${end.bytes} bytes: a crash or a full disk; nothing that was answered for`,
        ] as const,
    ),
    ['unseen', limit],
  ])
}

function say(record: AuditRecord, { json }: ReachOptions): void {
  if (json === true) return void process.stdout.write(`${visibleJson(record)}\n`)
  const { seq, at, type, body } = record
  const fields = Object.entries({ ...(body as object) })
    .filter(([key, value]) => told.has(key) && value !== null)
    .map(([key, value]) => `${key}=${word(value)}`)
  const line = visible(fields.join(' '))
  process.stdout.write(`${paint('dim', `${at.slice(0, 23)} #${seq}`)} ${paint('bold', type)} ${line}\n`)
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
])

function printWhole({ seq, at, type, daemon, segment, hash, prev, body }: AuditRecord): void {
  printFields([
    ['record', `${seq} ${type}`],
    ['at', at],
    ['daemon', `${daemon}, segment ${segment}`],
    ['hash', hash],
    ['prev', prev],
    ...Object.entries({ ...(body as object) }).map(
      ([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)] as const,
    ),
  ])
  process.stdout.write('\n')
}

function anchor(text: string): AuditAnchor {
  const found = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text)
  if (found === null)
    throw new SallyportError(
      'ERR_USAGE',
      `--anchor: got ${text}, expected SEQ:HASH as sallyport audit export says it`,
    )
  return { seq: Number(found[1]), hash: found[2] ?? '' }
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw new SallyportError('ERR_USAGE', `got ${text}, expected a whole number`)
}
