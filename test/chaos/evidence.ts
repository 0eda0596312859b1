// The journal of a run, held against what callers were told and what really happened.
import { execFileSync } from 'node:child_process'
import type { JournalRecord } from '../../src/journal/record.ts'
import { main } from '../support/daemon.ts'
import { recordsOf } from '../support/witness.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Account } from './account.ts'
import type { Ledger } from './ledger.ts'
import type { Stage } from './stage.ts'

type Body = Readonly<Record<string, unknown>>

/** Refusals that come before anything is sent. */
const refusals: ReadonlySet<string> = new Set([
  'ERR_JOURNAL',
  'ERR_POLICY_DENIED',
  'ERR_PERMIT_REFUSED',
  'ERR_APPROVAL_UNAVAILABLE',
  'ERR_APPROVAL_DENIED',
  'ERR_APPROVAL_TIMEOUT',
  'ERR_DECLARATION_MISSING',
  'ERR_BUSY',
])

/** What is on record once no daemon runs, verified; null, and `chain` is broken, where that cannot be read. */
export function journalOf({ at, account }: Stage): readonly JournalRecord[] | null {
  verify(at.stateDir, at.env, account)
  try {
    return recordsOf(at.stateDir)
  } catch (error) {
    account.breaks('chain', String(error))
    return null
  }
}

/** Breaks `alone` for each daemon that wrote on after another one had begun to. */
export function expectAlone(account: Account, records: readonly Pick<JournalRecord, 'daemon'>[]): void {
  const runs = records.map(({ daemon }) => daemon).filter((daemon, n, all) => daemon !== all[n - 1])
  for (const [daemon, all] of Map.groupBy(runs, (run) => run))
    if (all.length > 1)
      account.breaks('alone', `${daemon} wrote to the journal while another one did, ${all.length} times`)
}

/** Judges everything that is on record; says how much that was. */
export function judge(
  { seen, account }: Stage,
  records: readonly JournalRecord[],
  ledger: Ledger,
  servers: readonly string[],
): void {
  const of = (type: string): readonly Body[] =>
    records.filter((record) => record.type === type).map(({ body }) => body as Body)
  const intents = new Map<string, Body[]>()
  for (const intent of of('call.intent')) {
    const token = /token-\d+-\w+/.exec(String(intent['request']))?.[0]
    if (token !== undefined) intents.set(token, [...(intents.get(token) ?? []), intent])
  }
  const denied = new Set(of('call.denied').map(({ call }) => call))
  const outcomes = Map.groupBy(of('call.outcome'), ({ call }) => call)

  // Effects, by those who had them.
  const effects = new Map<string, number>()
  for (const server of servers)
    for (const token of effectsOf(seen.source, server)) effects.set(token, (effects.get(token) ?? 0) + 1)
  for (const [token, times] of effects) {
    const sent = (intents.get(token) ?? []).filter(({ call }) => !denied.has(call))
    if (sent.length === 0)
      account.breaks('intents', `${token} has had its effect, and no intent that was not denied`)
    if (times > sent.length)
      account.breaks('intents', `${token} has had its effect ${times} times for ${sent.length} intents`)
  }

  // Ends, one for each intent.
  for (const { call, server } of of('call.intent')) {
    const ends = (outcomes.get(call)?.length ?? 0) + (denied.has(call) ? 1 : 0)
    if (ends !== 1) account.breaks('outcomes', `${String(call)} of ${String(server)} has ${ends} ends`)
  }
  for (const [{ outcome } = {}] of outcomes.values()) account.count('outcomes', String(outcome))

  // What callers were told.
  for (const [token, { server, way, end }] of ledger.told) {
    const had = effects.has(token)
    if (end === 'done' && !had)
      account.breaks('results', `${token} (${way}) was answered, and has had no effect`)
    if (had && refusals.has(end))
      account.breaks('refusals', `${token} (${way}) was refused with ${end}, and has had its effect`)
    const kinds = (intents.get(token) ?? [])
      .flatMap(({ call }) => outcomes.get(call) ?? [])
      .map(({ outcome }) => outcome)
    if (had && way === 'dies-first')
      account.breaks('results', `${token} has an effect of a server that died before`)
    if (end === 'done' && !kinds.some((kind) => kind === 'result' || kind === 'unknown'))
      account.breaks(
        'results',
        `${token} of ${server} was answered, and its outcome is ${kinds.join() || 'none'}`,
      )
  }
  account.say(
    `${records.length} records, ${intents.size} calls with an intent, ${effects.size} effects, ${ledger.told.size} asked for`,
  )
}

function verify(stateDir: string, env: Readonly<Record<string, string>>, account: Account): void {
  try {
    const args = [main, 'audit', 'verify', '--state', stateDir]
    account.say(
      execFileSync(process.execPath, args, { env, cwd: '/', encoding: 'utf8' }).trim().split('\n')[0] ?? '',
    )
  } catch (error) {
    account.breaks('chain', error instanceof Error ? error.message : String(error))
  }
}

/** Tokens in the order of their effects; a line that its writer died of counts for what it says. */
function effectsOf(source: string, server: string): readonly string[] {
  try {
    return readFileSync(join(source, server), 'utf8').split('\n').filter(Boolean)
  } catch {
    return [] // it never ran
  }
}
