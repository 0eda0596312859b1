// A daemon that is killed at any step of a call: the chain holds, what nobody knows is said, and nothing is sent twice.
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { expectAftermath } from '../support/aftermath.ts'
import { configOf, endServe, fixture, place, serve } from '../support/daemon.ts'
import type { Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { type Holdings, holdingsOf, scratchOf } from '../support/holdings.ts'
import { elapsed, instants } from '../support/instants.ts'
import { childrenOf, orphanedSandboxes } from '../support/processes.ts'
import { cgroupsOf, descendantsOf, isAlive } from '../support/leaks.ts'
import { type Fault, type Faults, faults } from '../support/fault.ts'
import { stretched } from '../support/pace.ts'
import { buildProbe } from '../support/probe.ts'
import { watching, yes } from '../support/watching.ts'
import { bodiesOf, recordsOf, witness, type Witness } from '../support/witness.ts'

type Life = Awaited<ReturnType<typeof serve>>

interface Row {
  readonly step: string
  readonly fault: Fault
  readonly server?: 'plain' | 'asked'
  /** Whether the call may have reached the server */
  readonly reached: 'no' | 'once' | 'perhaps'
  /** The caller has its answer: no outcome stands between the two */
  readonly isTold?: boolean
  /** What the journal says of its outcome after the next start */
  readonly outcome: 'none' | 'unknown' | 'result'
  readonly isTorn?: boolean
  /** Where the answer waits for nothing, and may come before the end does */
  readonly mayBeTold?: boolean
}

const rows: readonly Row[] = [
  {
    step: 'before its intent is written',
    fault: 'kill-before "type":"call.intent"',
    reached: 'no',
    outcome: 'none',
  },
  {
    step: 'with half of its intent written',
    fault: 'kill-half "type":"call.intent"',
    reached: 'no',
    outcome: 'none',
    isTorn: true,
  },
  {
    step: 'after its intent',
    fault: 'kill-after "type":"call.intent"',
    reached: 'no',
    outcome: 'unknown',
  },
  {
    step: 'at its dispatch',
    fault: 'kill-before "method":"tools/call"',
    reached: 'no',
    outcome: 'unknown',
  },
  {
    step: 'after its dispatch',
    fault: 'kill-after "method":"tools/call"',
    reached: 'perhaps',
    outcome: 'unknown',
  },
  {
    step: 'between its answer and its outcome',
    fault: 'kill-before "type":"call.outcome"',
    mayBeTold: true,
    reached: 'once',
    outcome: 'unknown',
  },
  {
    step: 'with half of its outcome written',
    fault: 'kill-half "type":"call.outcome"',
    mayBeTold: true,
    reached: 'once',
    outcome: 'unknown',
    isTorn: true,
  },
  {
    step: 'once its outcome is written',
    fault: 'kill-after "type":"call.outcome"',
    mayBeTold: true,
    reached: 'once',
    outcome: 'result',
  },
  {
    step: 'while it waits for an approval',
    fault: 'kill-after "type":"approval.asked"',
    server: 'asked',
    reached: 'no',
    outcome: 'none',
  },
  {
    step: 'between its approval and the use of it',
    fault: 'kill-before "type":"approval.used"',
    server: 'asked',
    reached: 'no',
    outcome: 'none',
  },
]

const rules = [
  { permission: 'mcp:asked:*', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]

/** Servers whose launches are under way beside that of the call */
const others = Array.from({ length: 11 }, (_, n) => `tiny${n}`)
const timeouts = { initialize_ms: 60_000 }
const tiny = { command: 'tiny', profile: 'offline', trust: 'trusted', acceptance: 'first-use', timeouts }

let seen: Witness
let at: Place
let fault: Faults
let life: Life | null = null
/** What a daemon at rest holds of the machine, before the first was killed */
let usual: Holdings

/** One of them is deaf to the end of its input, and to SIGTERM. */
const running = ['plain', 'deaf', ...others]

/** A daemon that faults can befall: the one in which the last test has looked at what a kill has left, else a new one. */
async function living(): Promise<Life> {
  if (life !== null && life.process.exitCode === null && life.process.signalCode === null) return life
  fault.disarm()
  return (life = await serve(at, { ...fault.env, TMPDIR: scratchOf(at) }))
}

/** What it holds, whatever it and the newest part of its journal are called; what containers of others keep meanwhile is not its own. */
function held({ hello }: Client): Holdings {
  const { mounts, ...all } = holdingsOf(at, hello)
  const own = { ...all, mounts: mounts.filter((line) => line.includes(at.folder)) }
  const told = JSON.stringify(own).replaceAll(hello.daemon, 'DAEMON')
  return JSON.parse(told.replaceAll(/\d{8}(?=\.jsonl)/g, 'NEWEST')) as Holdings
}

/** Its guard, who asks for the credentials of peers, and the launcher of the next sandbox. */
const isAtRest = ({ hello }: Client): boolean => childrenOf(hello.pid).length === 3

beforeAll(async () => {
  seen = await witness()
  const servers = { plain: seen.entry('plain'), asked: seen.entry('asked'), deaf: fixture('ignore-sigterm') }
  const node = { name: 'node', path: process.execPath }
  const allowed = [node, { name: 'tiny', path: buildProbe('../../scale/server') }]
  const more = { rules, allowed_commands: allowed }
  at = await place(configOf({ ...servers, ...Object.fromEntries(others.map((name) => [name, tiny])) }, more))
  mkdirSync(scratchOf(at), { mode: 0o700 })
  fault = faults(at.folder)
  // What the first launch of a server leaves for good is there.
  const { client } = await living()
  for (const server of ['plain', ...others]) {
    await client.call('servers/start', { server })
    await client.call('servers/stop', { server })
  }
  await eventually(() => isAtRest(client))
  usual = held(client)
})
afterAll(async () => {
  if (life !== null) await endServe(life)
  await at[Symbol.asyncDispose]()
  await seen[Symbol.asyncDispose]()
})

const call = (client: Client, server: string, text: string) =>
  client.call('tools/call', { server, tool: 'echo', arguments: { text } })

/** Resolves in the turn in which the launcher that waited is no longer the daemon's only one; fails where the call ends before. */
async function taken(pid: number, told: Promise<unknown>): Promise<void> {
  const what = 'the launcher that the daemon starts in place of the one that the call has taken'
  let isTold = false
  void told.finally(() => (isTold = true))
  const began = performance.now()
  while (childrenOf(pid).length === 3) {
    if (isTold)
      throw new Error(`the caller was told ${JSON.stringify(await told)} before it was seen: ${what}`)
    if (performance.now() - began > 20_000) throw new Error(`not within 20 s: ${what}`)
    await nextTurn()
  }
}

const isGone = (pid: number): boolean => !existsSync(`/proc/${pid}`)

describe('a daemon that is killed', () => {
  // How far the launch has come by then is the machine's; the last is far beyond it.
  test.each([...instants(10), 50])(
    `%d ms into the launch for a call, beside ${others.length}, leaves its caller told, one end of what is on record, and nothing else`,
    async (ms) => {
      const text = `launch-${Math.random()}`
      const { process, client } = await living()
      const { daemon } = client.hello
      const before = new Set(orphanedSandboxes().map(({ pid }) => pid))
      await eventually(() => isAtRest(client))
      const helpers = descendantsOf(client.hello.pid).map(({ pid }) => pid)
      const ends = Promise.allSettled(others.map((server) => client.call('servers/start', { server })))
      const told = call(client, 'plain', text).then(
        () => 'done',
        ({ code }: { code?: unknown }) => code,
      )
      // The launcher is taken, and another one is started in its place.
      await taken(client.hello.pid, told)
      await elapsed(ms)
      const dead = once(process, 'exit')
      process.kill('SIGKILL')
      await dead
      await client[Symbol.asyncDispose]()
      expect(['ERR_DAEMON_UNAVAILABLE', 'done']).toContain(await told)
      await ends
      await eventually(() => helpers.every(isGone))
      await eventually(() => orphanedSandboxes().every(({ pid }) => before.has(pid)))
      await eventually(() => cgroupsOf(daemon).length === 0)

      const again = await living()
      const intents = bodiesOf(at.stateDir, 'call.intent').filter(({ request }) =>
        String(request).includes(text),
      )
      const outcomes = bodiesOf(at.stateDir, 'call.outcome')
      expect(outcomes.filter(({ call: of }) => of === intents[0]?.['call']).length).toBe(intents.length)
      const reached = seen.calls('plain').filter((line) => line.includes(text)).length
      expect(reached).toBeLessThanOrEqual(intents.length)
      if ((await told) === 'done') expect([intents.length, reached]).toEqual([1, 1])
      await expectAftermath(at, again.client)
      // Neither mounts nor sockets, files and control groups, but those that every daemon has.
      await eventually(() => expect(held(again.client)).toEqual(usual) ?? true)
      expect((await at.run(['ps'])).stdout).not.toMatch(/^(plain|tiny\d+) .* (ready|starting) /m)
    },
  )

  test(`while ${running.length} servers run and nobody calls leaves nothing of them after a second, or four where the machine is slow`, async () => {
    const { process, client } = await living()
    const before = new Set(orphanedSandboxes().map(({ pid }) => pid))
    for (const server of running) await client.call('servers/start', { server })
    await eventually(() => childrenOf(client.hello.pid).length === 3 + running.length)
    const below = descendantsOf(client.hello.pid).map(({ pid }) => pid)
    expect(below.length).toBeGreaterThan(3 * running.length)
    process.kill('SIGKILL')
    const began = performance.now()
    await eventually(() => !below.some(isAlive) && orphanedSandboxes().every(({ pid }) => before.has(pid)))
    const tookMs = performance.now() - began
    await client[Symbol.asyncDispose]()
    const mostMs = tookMs < 1000 ? 1000 : Math.min(4000, await stretched(1000))
    const again = await living()
    expect(tookMs).toBeLessThan(mostMs)
    await expectAftermath(at, again.client)
    await eventually(() => isAtRest(again.client))
  })

  test.each(rows)('$step of a call', async ({ step, fault: what, server = 'plain', ...expected }) => {
    const before = seen.calls(server).length
    const tornBefore = bodiesOf(at.stateDir, 'segment.opened').filter(({ torn }) => torn !== null).length
    let questions: readonly unknown[] = []
    {
      const { process, client } = await living()
      await using operator = client
      await using host = await at.connect('host')
      await operator.call('servers/start', { server })
      await using _watch =
        server === 'asked' ? await watching(operator, yes(operator, 'session'), { mayEnd: true }) : null
      const dead = once(process, 'exit')
      fault.arm(what)
      const told = await call(host, server, step).catch((error: unknown) => error)
      if (expected.mayBeTold !== true || told instanceof Error)
        expect(told).toMatchObject({ code: 'ERR_DAEMON_UNAVAILABLE', exitStatus: 5 })
      const end = await dead
      fault.disarm()
      expect(end).toEqual([null, 'SIGKILL'])
      questions = bodiesOf(at.stateDir, 'approval.asked')
    }
    const reached = seen.calls(server).length - before
    if (expected.reached !== 'perhaps') expect(reached).toBe(expected.reached === 'once' ? 1 : 0)

    const { client: operator } = await living()
    // The chain holds, and what was cut off is told of by the segment after it.
    expect(await operator.call('audit/verify', {})).toMatchObject({ ok: true, flaw: null })
    const torn = bodiesOf(at.stateDir, 'segment.opened').filter(({ torn: end }) => end !== null)
    expect(torn.length - tornBefore).toBe(expected.isTorn === true ? 1 : 0)
    // Exactly one outcome where an intent stands.
    const intent = bodiesOf(at.stateDir, 'call.intent').find(({ request }) => String(request).includes(step))
    const outcomes = bodiesOf(at.stateDir, 'call.outcome').filter((one) => one['call'] === intent?.['call'])
    if (expected.outcome === 'none') expect(intent).toBeUndefined()
    else expect(outcomes).toMatchObject([{ outcome: expected.outcome, intent: expect.any(Number) }])
    // Whatever let the old call through lets nothing through now.
    expect(await operator.call('permits/list', {})).toEqual({ permits: [] })
    expect(await operator.call('approvals/list', {})).toMatchObject({ pending: [], standing: [] })
    for (const { id } of questions.slice(-1) as { id: string }[])
      await expect(operator.call('approvals/approve', { id })).rejects.toMatchObject({
        code: 'ERR_APPROVAL_NOT_FOUND',
      })
    // A new life sends what it is asked to, and nothing of the old one.
    await call(operator, 'plain', 'afterwards')
    await expect(call(operator, 'asked', step)).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
    const again = seen.calls(server).filter((line) => line.includes(step)).length
    expect(again).toBeLessThanOrEqual(1)
    expect(again).toBe(seen.calls(server).length - before - (server === 'plain' ? 1 : 0))
    await expectAftermath(at, operator)
    const calls = recordsOf(at.stateDir).filter(({ type }) => type === 'call.outcome')
    expect(new Set(calls.map(({ body }) => (body as { call: string }).call)).size).toBe(calls.length)
  })
})
