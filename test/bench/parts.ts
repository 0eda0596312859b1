// Where the microseconds of a governed call go: each part by itself, on the messages of the benchmark, and the governor as
// a whole. What is left to the total is streams, promises, collections, and caches that are colder than here.
import { randomBytes } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { canonicalize, digestOf } from '../../src/call/canonical.ts'
import { type Binding, Permits } from '../../src/call/permit.ts'
import { BatchBytes } from '../../src/journal/batch-bytes.ts'
import { layOutBatch, originOf } from '../../src/journal/record.ts'
import { beginning } from '../../src/journal/segments.ts'
import { newCallId, newInstanceId } from '../../src/lib/ids.ts'
import type { Proposal } from '../../src/schema/governor.ts'
import { readEnvelope, readUnambiguous, type Request } from '../../src/supervisor/message/envelope.ts'
import { asksOf } from '../../src/supervisor/lanes/held.ts'
import { allowAll } from '../support/attach.ts'
import { governed } from '../support/governance.ts'
import { serverSettings } from '../support/server-settings.ts'
import { tempDir } from '../support/temp-dir.ts'

const batch = 64
const args = '{"message":"0123456789abcdef0123456789abcdef"}'
const params = `{"name":"echo","arguments":${args}}`
const request = `{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":${params}}`
const answer =
  '{"result":{"content":[{"type":"text","text":"0123456789abcdef0123456789abcdef"}]},"jsonrpc":"2.0","id":12345}'

/** Lines of a table: what one call takes of each part, CPU µs, the least of ten runs. */
export async function parts(): Promise<readonly string[]> {
  const rows = [...simpleParts(), await journalWrite(), await wholeGovernor()]
  return ['', 'CPU µs a call', ...rows.map(([name, us]) => `${name.padEnd(64)}${us.toFixed(2).padStart(6)}`)]
}

type Row = readonly [string, number]

function simpleParts(): readonly Row[] {
  const envelope = readUnambiguous(request, 0, request.length) as Request
  const parsed: unknown = JSON.parse(args)
  const permits = new Permits(() => performance.now())
  const intent = `{"call":"${newCallId()}","evidence":"${'e'.repeat(420)}","request":${JSON.stringify(params)}}`
  const outcome = `{"call":"${newCallId()}","evidence":"${'e'.repeat(190)}","response":${JSON.stringify(answer)}}`
  return [
    [
      'read the request: envelope, grammar, no key twice',
      time(() => readUnambiguous(request, 0, request.length)),
    ],
    ['read the answer: envelope, grammar', time(() => readEnvelope(answer, 0, answer.length))],
    ['parse the arguments', time(() => asksOf(envelope, 'call'))],
    [
      'canonicalize the arguments, digest them and the bytes',
      time(() => [digestOf(canonicalize(parsed)), digestOf(params)]),
    ],
    [
      'permit and check: eight checks',
      time(() => permits.spend(permits.issue(binding(), 30_000), { ...binding(), ...world })),
    ],
    ['put intents in their batch, 64 at a time: laid out, SHA-256, MAC', batchOf('call.intent', intent)],
    ['put outcomes in their batch, the same', batchOf('call.outcome', outcome)],
  ]
}

function batchOf(type: string, body: string): number {
  const bytes = new BatchBytes()
  const entries = Array.from({ length: batch }, () => ({ type, body }))
  const seal = { key: randomBytes(32), after: '' }
  const origin = originOf(new Date(), 'd-0123456789ab', 1)
  return time(() => layOutBatch(bytes, entries, origin, beginning, seal), 1000) / batch
}

const digest = digestOf('')
const peer = { uid: 1000, gid: 1000, pid: 1 }
const world = { contains: () => true, isEligible: true, hold: null }
const binding = (): Binding => ({
  identity: 'fixture/echo@1.0.0#1',
  argumentsDigest: digest,
  bytesDigest: digest,
  sideEffects: ['read', 'write'],
  resourceScopes: [],
  lineage: null,
  approval: null,
  policyVersion: '0123456789abcdef',
  trustEpoch: 0,
  principal: '1000',
})

/** 64 intents and 64 outcomes as two writes, into a file that grows. */
async function journalWrite(): Promise<Row> {
  await using dir = await tempDir()
  const fd = openSync(join(dir.path, 'f'), 'a')
  const [intents, outcomes] = [Buffer.alloc(batch * 810, 'x'), Buffer.alloc(batch * 590, 'x')]
  const us = time(() => [writeSync(fd, intents), writeSync(fd, outcomes)], 1000) / batch
  closeSync(fd)
  return ['write both records, 64 at a time', us]
}

/** The daemon's own governor and journal without any relay: 64 calls are admitted at once, then settled. */
export async function wholeGovernor(): Promise<Row> {
  const server = serverSettings('raw-echo.mjs')
  await using all = await governed({ servers: [server], rules: allowAll, emit: () => undefined })
  const { governor } = all.policy
  const instance = newInstanceId()
  const tool = { name: 'echo', inputSchema: { type: 'object' } }
  await governor.observe({ server, instance, tools: new Map([['echo', tool]]), saidVersion: null, rest: {} })
  const waiting = { signal: new AbortController().signal }
  const proposal = (): Proposal => ({
    call: newCallId(),
    kind: 'tool',
    server,
    instance,
    subject: 'echo',
    arguments: JSON.parse(args) as unknown,
    bytes: params,
    evidence: params,
    principal: '1000',
    peer,
    session: 's-0123456789abcdefghijkl',
    lineage: null,
    id: null,
    obstacle: null,
    comparing: () => null,
    isPart: false,
  })
  const outcome = { kind: 'result', durationMs: 0.123, bytes: answer, detail: null } as const
  let least = Infinity
  for (let run = 0; run < 10; run++) {
    const before = process.cpuUsage()
    for (let n = 0; n < 50; n++) {
      const admitted = Array.from({ length: batch }, () => governor.admit(proposal(), waiting))
      for (const admission of await Promise.all(admitted)) governor.settle(admission, outcome)
      await new Promise(setImmediate)
    }
    least = Math.min(least, microseconds(before) / (50 * batch))
  }
  return ['all of the governor, from proposal to outcome, journal included', least]
}

let kept: unknown
/** CPU time of one call of `what`, µs: the least of ten runs. */
function time(what: () => unknown, times = 20_000): number {
  let least = Infinity
  for (let run = 0; run < 10; run++) {
    const before = process.cpuUsage()
    for (let n = 0; n < times; n++) kept = what()
    least = Math.min(least, microseconds(before) / times)
  }
  return kept === process ? 0 : least
}

function microseconds(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return user + system
}
