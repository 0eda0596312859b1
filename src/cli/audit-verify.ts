// `sallyport audit verify`: whether the journal is what was written, by the daemon that runs or without one.
import type { Command } from 'commander'
import { SallyportError } from '../errors.ts'
import type { AuditAnchor, AuditVerification } from '../rpc/governed.ts'
import { elsewhere, here, type HereOptions, isHere, judgedHere, offline } from './journal-here.ts'
import { hint, paint, printFields, printJson, visible } from './output.ts'
import { reach, reaching } from './reach.ts'
import { counted } from '../lib/counted.ts'
import type { ReachOptions } from './reach.ts'

interface VerifyOptions extends ReachOptions, HereOptions {
  readonly anchor?: AuditAnchor
  readonly shortened?: readonly number[]
  /** False for a copy that has no key */
  readonly key: boolean
}

export function registerVerify(audit: Command): void {
  offline(reaching(audit.command('verify')), 'verify')
    .description(
      'check every record against its hash, its place and the key; 4 where one is not what was written, or an end was lost',
    )
    .option('--anchor <seq:hash>', 'what an export said, and what must still be there', anchor)
    .option(
      '--no-key',
      'of a copy without its key: by hashes alone, which whoever wrote it could have made anew',
    )
    .option(
      '--shortened <seq...>',
      'records that tell of a lost end, or of no head file to use, that you know of, as of a loss of power: no failure',
      recordNumbers,
    )
    .action(async (options: VerifyOptions) => {
      const isThere = !isHere(options) && options.key
      const found = isThere ? await verifyThere(options) : await verifyHere(options)
      if (options.json === true) printJson(found)
      else printVerification(found)
      const news = found.shortened.filter(({ seq }) => options.shortened?.includes(seq) !== true)
      for (const { seq, lost } of news)
        hint(
          `record ${seq} tells ${lost === null ? 'that a start had no head file that it could use' : 'of an end that was lost'}; who knows why says --shortened ${seq}`,
        )
      if (!found.ok || news.length > 0) process.exitCode = 4
    })
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
    if (!(error instanceof SallyportError)) throw error
    if (error.code === 'ERR_NOT_AUTHORISED')
      throw new SallyportError(error.code, `${error.message}; ${elsewhere}`, error.details)
    if (error.code !== 'ERR_DAEMON_UNAVAILABLE') throw error
    hint('no daemon answers; the state folder is verified instead')
    return verifyHere(options)
  }
}

async function verifyHere(options: VerifyOptions): Promise<AuditVerification> {
  return judgedHere(await here(options, 'verify'), options)
}

function recordNumbers(text: string, earlier: readonly number[] = []): readonly number[] {
  if (/^[1-9]\d{0,14}$/.test(text)) return [...earlier, Number(text)]
  throw new SallyportError('ERR_USAGE', `--shortened: got ${text}, expected the number of a record, as 390`)
}

function printVerification({
  ok,
  records,
  segments,
  sidecars,
  head,
  begins,
  torn,
  shortened,
  unusable,
  flaw,
  limit,
}: AuditVerification): void {
  const verdict = ok ? paint('green', 'whole') : paint('red', 'NOT what was written')
  // Where the reading ended at a flaw, the record that would account for it may stand behind.
  const why = flaw === null ? ', as journal.keep_days had it' : ''
  const less = shortened.some(({ lost }) => lost !== null) ? ', and had been longer' : ''
  process.stdout.write(`the journal is ${verdict}${less}\n`)
  printFields([
    ['records', `${records} in ${counted(segments, 'segment')}`],
    ['beside it', `${counted(sidecars, 'file')} of evidence`],
    ...(begins.seq === 0 ? [] : [['begins', `at anchor ${begins.seq}:${begins.hash}${why}`] as const]),
    ['head', `${head.seq}:${head.hash}`],
    ...(flaw === null
      ? []
      : [['flaw', `${visible(flaw.path)}:${flaw.line}: ${flaw.kind}: ${flaw.detail}`] as const]),
    ...torn.map(
      (end) =>
        [
          'cut off',
          `segment ${end.segment} at byte ${end.offset}, ${counted(end.bytes, 'byte')}: as a crash or a full disk leaves it; it counts for nothing`,
        ] as const,
    ),
    ...shortened.map(
      ({ seq, at, reason }) => ['shortened', `record ${seq} of ${at} tells: ${visible(reason)}`] as const,
    ),
    ...unusable.map(
      ({ path, reason }) =>
        [
          'snapshot',
          `${path}: ${visible(reason)}, so no start uses it: it reads the records, and loses nothing`,
        ] as const,
    ),
    ['unseen', limit],
  ])
}

function anchor(text: string): AuditAnchor {
  const found = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text)
  if (found === null)
    throw new SallyportError(
      'ERR_USAGE',
      `--anchor: got ${text}, expected a number, a colon and 64 hex digits, as sallyport audit export says them`,
    )
  return { seq: Number(found[1]), hash: found[2] ?? '' }
}
