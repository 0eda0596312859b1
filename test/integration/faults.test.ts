// What a supervisor is trusted with, as docs/faults.md lists it: of each fault what its caller, the journal, `ps` and the machine show.
import { execFileSync } from 'node:child_process'
import { existsSync, ftruncateSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { expectAftermath } from '../support/aftermath.ts'
import { attached } from '../support/attached.ts'
import { configOf, fixture, place, serve, type Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { type Faults, faults } from '../support/fault.ts'
import { cgroupsOf, childrenOf, descendantsOf } from '../support/leaks.ts'
import { watching } from '../support/watching.ts'
import { bodiesOf, witness, type Witness } from '../support/witness.ts'

let seen: Witness
let at: Place
let client: Client
let pid: number
let fault: Faults
let clock: number

const restart = { schedule_s: [0.1], jitter: 0, steady_s: 60, storm: 1000 }
/** As the usual ones go, in small, s */
const waits = [0.05, 0.1, 0.2, 0.4]
const names = ['monitor', 'init', 'server', 'tidy', 'forks', 'frozen', 'mute', 'shut', 'brief', 'other']

beforeAll(async () => {
  seen = await witness()
  const chaotic = (name: string): object =>
    fixture('chaotic', {
      args: ['/app/chaotic.mjs', `/seen/${name}`],
      profile: 'workspace-write',
      mounts: [seen.mount],
      restart,
      // What answers on a busy machine must not be too late; what never answers need not be waited for.
      timeouts: { call_ms: ['frozen', 'shut', 'other'].includes(name) ? 3000 : 30_000 },
      stop: { eof_ms: 100, term_ms: 1000 },
    })
  const loop = { schedule_s: waits, jitter: 0, steady_s: 60, storm: 1000, start_attempts: 50 }
  at = await place(
    configOf(
      {
        ...Object.fromEntries([...names, 'plain', 'asked'].map((name) => [name, chaotic(name)])),
        loop: fixture('crash-at-start', { restart: loop }),
        late: fixture('crash-at-start', { restart: { ...loop, schedule_s: [3600] } }),
      },
      {
        rules: [
          { permission: 'mcp:asked:*', action: 'ask' },
          { permission: 'mcp:*:*', action: 'allow' },
        ],
      },
    ),
  )
  fault = faults(at.folder)
  const library = join(at.folder, 'clock.so')
  const source = fileURLToPath(new URL('../fixtures/probes/clock.c', import.meta.url))
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source])
  clock = openSync(join(at.folder, 'clock'), 'w+', 0o600)
  ftruncateSync(clock, 8)
  const preload = `${fault.env['LD_PRELOAD']}:${library}`
  const env = { ...fault.env, LD_PRELOAD: preload, SALLYPORT_CLOCK: join(at.folder, 'clock') }
  ;({ client } = await serve(at, env))
  pid = client.hello.pid
})
afterAll(async () => {
  await client.call('daemon/shutdown', {})
  await client[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
  await seen[Symbol.asyncDispose]()
})

let count = 0
const call = (server: string, way = 'honest', by: Client = client, ms = 0) =>
  by.call('tools/call', { server, tool: 'effect', arguments: { token: `t${++count}`, way, ms } })
const codeOf = (made: Promise<unknown>): Promise<unknown> =>
  made.then(
    () => 'done',
    (error: { code?: unknown }) => error.code,
  )
const instance = async (server: string) =>
  (await client.call('servers/get', { server })).instances.find(({ purpose }) => purpose === 'control')
const outcomes = (server: string) =>
  bodiesOf(at.stateDir, 'call.outcome').filter((one) => one['server'] === server)
/** Of the last call; it is written in the turn after the answer. */
const endsAs = (server: string, outcome: string) =>
  eventually(() => outcomes(server).at(-1)?.['outcome'] === outcome)
const effects = (server: string): readonly string[] => {
  const path = join(seen.source, server)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}
/** PID 1 of a sandbox, the sandbox tool above it and the server below it. */
async function partsOf(server: string) {
  const { pid: init = 0 } = (await instance(server)) ?? {}
  const monitor = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${init}/status`, 'utf8'))?.[1])
  const [child] = descendantsOf(init ?? 0)
  return { init: init ?? 0, monitor, server: child?.pid ?? 0 }
}
/** `plain` runs, and `brief` is known and does not. */
async function withoutBrief(): Promise<void> {
  for (const server of ['plain', 'brief']) await client.call('servers/start', { server })
  await client.call('servers/stop', { server: 'brief' })
}
/** Puts the wall clock of the daemon so far from the machine's. */
function setClock(offsetMs: number): void {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(BigInt(offsetMs))
  writeSync(clock, bytes, 0, 8, 0)
}
const isGone = (process: number): boolean => !existsSync(`/proc/${process}`)

afterEach(() => expectAftermath(at, client))

describe('a fault', () => {
  test.each([
    ['monitor', /its sandbox was lost$/],
    ['init', /its sandbox was lost$/],
    // Where the rest of its tree is not gone at once, it is not known yet how it ended.
    ['server', /it was ended by signal 9$|it ended by itself$/],
  ] as const)(
    '3: a killed %s is one end with its reason, one error, no second try, and a new start',
    async (part, reason) => {
      await call(part)
      const { id } = (await instance(part)) ?? {}
      const parts = await partsOf(part)
      const waiting = codeOf(call(part, 'silent'))
      await eventually(() => effects(part).length === 2)
      process.kill(parts[part], 'SIGKILL')
      expect(await waiting).toBe('ERR_SERVER_UNAVAILABLE')
      await eventually(() => Object.values(parts).every(isGone))
      await eventually(() => outcomes(part).length === 2)
      expect(outcomes(part)).toMatchObject([
        { outcome: 'result' },
        { outcome: 'lost', detail: expect.stringMatching(reason) },
      ])
      const after = await eventually(async () => {
        const view = await instance(part)
        return view?.state === 'ready' && view
      })
      expect(after.restarts).toBe(1)
      expect(after.id).not.toBe(id)
      expect(effects(part)).toHaveLength(2)
      await call(part)
    },
  )

  test('5: a server that needs most of term_ms to tidy up has it', async () => {
    await call('tidy', 'tidies')
    const { init } = await partsOf('tidy')
    await client.call('servers/stop', { server: 'tidy' })
    expect(effects('tidy').at(-1)).toBe('tidied')
    expect(isGone(init)).toBe(true)
    expect(await instance('tidy')).toMatchObject({
      state: 'stopped',
      reason: expect.stringMatching(/status 0|ended/),
    })
  })

  test('7: children that hold the output of a server that ended are waited for by nobody', async () => {
    await call('forks', 'forks')
    const { init, server } = await partsOf('forks')
    await eventually(() => descendantsOf(init).length > 3)
    const below = descendantsOf(init).map((child) => child.pid)
    const began = performance.now()
    process.kill(server, 'SIGKILL')
    await eventually(() => [init, ...below].every(isGone))
    await eventually(async () => (await instance('forks'))?.restarts === 1)
    // What holds the output would do so for ten minutes.
    expect(performance.now() - began).toBeLessThan(60_000)
  })

  test('9: a call to a server that is stopped by a signal times out, and stopping it still works', async () => {
    await call('frozen')
    const { init, server } = await partsOf('frozen')
    process.kill(server, 'SIGSTOP')
    expect(await codeOf(call('frozen'))).toBe('ERR_CALL_TIMEOUT')
    await endsAs('frozen', 'timeout')
    await client.call('servers/stop', { server: 'frozen' })
    expect(isGone(init)).toBe(true)
    expect(await instance('frozen')).toMatchObject({ state: 'stopped', pid: null })
  })

  test('10: a server that crashes at every start is tried on the schedule, at rest between, and refused at once', async () => {
    const over = new AbortController()
    await using counting = await at.connect('operator')
    const { seq: since } = await counting.call('events/subscribe', {})
    const began = performance.now()
    await client.call('servers/start', { server: 'loop' }).catch(() => undefined)
    const [descriptors, below] = [readdirSync(`/proc/${pid}/fd`).length, descendantsOf(pid).length]
    onTestFinished(async () => void (await client.call('servers/stop', { server: 'loop' })))
    const due = [...waits, ...Array<number>(6).fill(0.4)].map((seconds) => seconds * 1000)
    let next: number | null = null
    let soonest = began
    const [pauses, told]: [number[], number[]] = [[], []]
    for await (const { type, server, at: when, detail } of client.events({ since, signal: over.signal })) {
      if (type !== 'instance/state' || server !== 'loop') continue
      const now = Date.parse(when)
      if (detail['to'] === 'starting' && next !== null) {
        // Never before the time that was told, nor, by a clock that nobody can put, before all waits so far are over.
        expect(now).toBeGreaterThanOrEqual(next)
        expect(performance.now()).toBeGreaterThanOrEqual((soonest += due[pauses.length] ?? 0))
        pauses.push(now - next)
        next = null
      }
      if (detail['to'] === 'backoff') {
        expect(next).toBe(null)
        next = Date.parse(String(detail['next_try_at']))
        // What is told is what is left of the wait, and it began before.
        expect(next - now).toBeLessThanOrEqual(due[pauses.length] ?? 0)
        if (told.length < due.length) told.push(next - now)
        expect(await codeOf(call('loop'))).toBe('ERR_SERVER_UNAVAILABLE')
      }
      if (pauses.length === 10) over.abort()
    }
    // And not long after: all together by less than all of the waits, which are as long as the schedule's.
    const all = (times: readonly number[]): number => times.reduce((sum, one) => sum + one, 0)
    expect(all(pauses)).toBeLessThan(all(due))
    expect(all(told)).toBeGreaterThan(0.9 * all(due))
    await eventually(async () => (await instance('loop'))?.state === 'backoff')
    expect((await instance('loop'))?.restarts).toBeGreaterThanOrEqual(10)
    await client.call('servers/stop', { server: 'loop' })
    await eventually(
      () => readdirSync(`/proc/${pid}/fd`).length <= descriptors && descendantsOf(pid).length <= below,
    )
    expect(bodiesOf(at.stateDir, 'call.intent').filter(({ server }) => server === 'loop')).toEqual([])
  })

  test.each([400, -400])(
    '24: a clock that jumps by %i days moves no start of a server, and when that is is told by the clock as it stands',
    async (days) => {
      const offsetMs = days * 86_400_000
      await client.call('servers/start', { server: 'late' }).catch(() => undefined)
      onTestFinished(async () => void (await client.call('servers/stop', { server: 'late' })))
      await eventually(async () => (await instance('late'))?.state === 'backoff')
      setClock(offsetMs)
      try {
        const { state, next_try_at } = (await instance('late')) ?? {}
        const leftMs = Date.parse(next_try_at ?? '') - (Date.now() + offsetMs)
        expect(state).toBe('backoff')
        expect(leftMs).toBeGreaterThan(1_000_000)
        expect(leftMs).toBeLessThanOrEqual(3_600_000)
      } finally {
        setClock(0)
      }
    },
  )

  test.each([
    ['mute', 'closes', 'ERR_SERVER_UNAVAILABLE', 'lost'],
    ['brief', 'exits', 'ERR_SERVER_UNAVAILABLE', 'lost'],
  ])(
    '21: a server (%s) that %s in a call fails that call, and runs again',
    async (server, way, code, outcome) => {
      await call(server)
      const { init } = await partsOf(server)
      expect(await codeOf(call(server, way))).toBe(code)
      await endsAs(server, outcome)
      await eventually(() => isGone(init))
      await eventually(async () => (await codeOf(call(server))) === 'done')
    },
  )

  test('21: a server that becomes another program fails its call in time, and ends when it is stopped', async () => {
    await call('other')
    const { init } = await partsOf('other')
    expect(await codeOf(call('other', 'becomes'))).toBe('ERR_CALL_TIMEOUT')
    await endsAs('other', 'timeout')
    expect(readFileSync(`/proc/${(await partsOf('other')).server}/cmdline`, 'utf8')).toMatch(/^sleep\W600/)
    await client.call('servers/stop', { server: 'other' })
    expect(isGone(init)).toBe(true)
    await call('other')
  })

  test('21: a server that closes its input is found out at the next call, and runs again', async () => {
    await call('shut')
    const { init } = await partsOf('shut')
    await call('shut', 'shuts')
    // Or it has ended before the next call, which then is another process's.
    await eventually(async () => (await codeOf(call('shut'))) !== 'done' || isGone(init))
    await eventually(() => isGone(init))
    await eventually(async () => (await codeOf(call('shut'))) === 'done')
  })

  test('23: where no process can be made (ENOMEM) a launch fails by name, calls go on, and it works again', async () => {
    await withoutBrief()
    const groups = cgroupsOf(client.hello.daemon)
    fault.arm({ fork: 'ENOMEM' })
    try {
      // One launch has the launcher that waited, and starts no process here: the next one has none.
      expect(await codeOf(call('brief'))).toBe('done')
      await withoutBrief()
      expect(await codeOf(call('brief'))).toBe('ERR_SHORTAGE')
      await call('plain')
      expect(cgroupsOf(client.hello.daemon)).toEqual(groups)
    } finally {
      fault.disarm()
    }
    await client.call('servers/start', { server: 'brief' })
    await call('brief')
  })

  test('23: where descriptors run out (EMFILE) a launch fails by name, calls go on, and nothing is kept', async () => {
    await withoutBrief()
    const open = (): number => readdirSync(`/proc/${pid}/fd`).length
    const before = open()
    const limit = (soft: string): unknown => execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${soft}:`])
    const usual = /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1] ?? ''
    limit('3')
    try {
      await expect(call('brief')).rejects.toMatchObject({
        code: 'ERR_SHORTAGE',
        message: expect.stringContaining('EMFILE'),
      })
      await call('plain')
    } finally {
      limit(usual)
    }
    // Nobody has to say that it may start again.
    await eventually(async () => (await codeOf(call('brief'))) === 'done')
    await client.call('servers/stop', { server: 'brief' })
    await eventually(() => open() <= before)
  })

  test('23: a server that ends while descriptors have run out ends nobody else, and is known to be gone afterwards', async () => {
    await withoutBrief()
    await call('brief')
    const { init } = await partsOf('brief')
    const usual = /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1] ?? ''
    const limit = (soft: string): unknown => execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${soft}:`])
    limit('3')
    try {
      process.kill(init, 'SIGKILL')
      await eventually(() => isGone(init))
      await call('plain')
    } finally {
      limit(usual)
    }
    await eventually(async () => (await instance('brief'))?.state !== 'ready')
    await eventually(async () => (await codeOf(call('brief'))) === 'done')
    expect(client.hello.pid).toBe(pid)
    await call('plain')
  })

  test('23: a server that is stopped while descriptors have run out is known to be gone afterwards', async () => {
    await withoutBrief()
    await call('brief')
    const usual = /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1] ?? ''
    const limit = (soft: string): unknown => execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${soft}:`])
    limit('3')
    try {
      // There is none to look with whether it is gone, and what is not proven is not reported.
      expect(await codeOf(client.call('servers/stop', { server: 'brief' }))).toBe('ERR_SHORTAGE')
    } finally {
      limit(usual)
    }
    // Nobody has to say that it may start again.
    await eventually(async () => (await codeOf(call('brief'))) === 'done')
  })

  test('23: a guard that ends while descriptors have run out ends no daemon, and there is another afterwards', async () => {
    await withoutBrief()
    const guards = () => childrenOf(pid).filter(({ name }) => name === 'sallyport-init')
    const isGuard = (child: number) =>
      readFileSync(`/proc/${child}/cmdline`, 'utf8').split('\0')[1] === 'guard'
    const guard = () => guards().find((child) => isGuard(child.pid))?.pid
    const first = await eventually(() => guard())
    const usual = /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1] ?? ''
    const limit = (soft: string): unknown => execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${soft}:`])
    limit('3')
    try {
      process.kill(first, 'SIGKILL')
      await eventually(() => isGone(first))
      await call('plain')
    } finally {
      limit(usual)
    }
    expect(await eventually(() => guard())).not.toBe(first)
    expect((await at.run(['serve'])).stderr).toContain('ERR_DAEMON_RUNNING')
    await call('plain')
  })

  test.each([400, -400])(
    '24: a clock that jumps by %i days ends no wait and no permit, and the chain holds',
    async (days) => {
      await using session = await attached(at, 'asked')
      await using watch = await watching(client)
      const answer = session.call('effect', { token: `t${++count}`, way: 'honest' })
      const { id } = await watch.next()
      setClock(days * 86_400_000)
      try {
        await client.call('approvals/approve', { id })
        expect(await answer).toMatchObject({ result: { structuredContent: {} } })
        await call('plain')
        expect(await client.call('audit/verify', {})).toMatchObject({ ok: true })
      } finally {
        setClock(0)
      }
    },
  )
})
