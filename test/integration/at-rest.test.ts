// A daemon that waits does nothing: no processor time, no process and no descriptor beside those it has.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { expectAftermath } from '../support/aftermath.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { cgroupsOf, childrenOf, descendantsOf } from '../support/leaks.ts'
import { processorS } from '../support/processor-time.ts'

test('10: while servers that crash at every start wait for their next one, or are given up, the daemon and its helpers are at rest', async () => {
  const restart = { schedule_s: [0.1, 3600], jitter: 0, steady_s: 60, storm: 1000, start_attempts: 50 }
  const waiting = ['loop', 'loop2', 'loop3']
  const givenUp = ['lost', 'lost2', 'lost3']
  const crashing = (names: readonly string[], more: object) =>
    Object.fromEntries(
      names.map((name) => [name, fixture('crash-at-start', { restart: { ...restart, ...more } })]),
    )
  await using at = await daemon(
    configOf({ ...crashing(waiting, {}), ...crashing(givenUp, { start_attempts: 1 }) }),
  )
  const { client } = at
  const { pid } = client.hello
  const viewOf = async (server: string) => (await client.call('servers/get', { server })).instances[0]
  for (const server of [...waiting, ...givenUp])
    await client.call('servers/start', { server }).catch(() => undefined)
  for (const server of waiting)
    await eventually(async () => {
      const view = await viewOf(server)
      return view?.state === 'backoff' && view.restarts > 0
    })
  for (const server of givenUp) expect(await viewOf(server)).toMatchObject({ state: 'failed' })
  // Its guard, who asks for the credentials of peers, and the launcher of the next sandbox
  await eventually(() => childrenOf(pid).length === 3)
  const processes = (): readonly number[] => [pid, ...descendantsOf(pid).map((child) => child.pid)]
  const held = () => ({ processes: processes(), descriptors: readdirSync(`/proc/${pid}/fd`).toSorted() })
  const before = held()
  const used = before.processes.map(processorS)
  const began = performance.now()
  await delay(3000)
  const wallS = (performance.now() - began) / 1000
  expect(held()).toEqual(before)
  for (const [n, one] of before.processes.entries()) {
    expect(processorS(one) - (used[n] ?? 0), readFileSync(`/proc/${one}/comm`, 'utf8')).toBeLessThan(
      wallS / 20,
    )
  }
  await expectAftermath(at, client)
})

test('23: a launch that runs out of descriptors, at whichever of those it needs, keeps none', async () => {
  const restart = { schedule_s: [0.05], jitter: 0, steady_s: 60, storm: 1000 }
  await using at = await daemon(configOf({ brief: fixture('echo', { restart }) }))
  const { client } = at
  const { pid } = client.hello
  const descriptors = (): ReadonlySet<number> => new Set(readdirSync(`/proc/${pid}/fd`).map(Number))
  const limit = (soft: number): unknown => execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${soft}:`])
  const usual = Number(/^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1])
  const waiting = (): number | undefined =>
    childrenOf(pid).find((child) => readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').includes('\0outer'))
      ?.pid
  // With its guard, and who asks for the credentials of peers.
  const isAtRest = (): boolean => childrenOf(pid).length === 3 && waiting() !== undefined
  const stop = (): Promise<unknown> => client.call('servers/stop', { server: 'brief' })
  const start = (): Promise<string | null> =>
    client.call('servers/start', { server: 'brief' }).then(
      () => null,
      (error: Error) => error.message,
    )
  const startAndStop = async (): Promise<void> => {
    expect(await start()).toBe(null)
    await stop()
    await eventually(isAtRest)
  }
  await startAndStop()
  const before = descriptors().size
  const groups = cgroupsOf(client.hello.daemon)
  const failures: string[] = []
  for (let failure: string | null = ''; failure !== null;) {
    // The launcher that waits has all that it needs already; without it the launch makes its own, and the next.
    const launcher = await eventually(() => waiting())
    process.kill(launcher, 'SIGKILL')
    await eventually(() => childrenOf(pid).length === 2)
    limit(withSpare(descriptors(), failures.length))
    failure = await start()
    limit(usual)
    if (failure !== null) failures.push(failure)
    await stop()
    await startAndStop()
  }
  // Two at least for each of its five pipes, and two for the start itself.
  expect(
    failures.filter((words) => /launcher of brief could not be started.*EMFILE/.test(words)).length,
  ).toBeGreaterThan(8)
  await eventually(() => descriptors().size <= before, 20_000).catch(() => undefined)
  expect(descriptors().size).toBeLessThanOrEqual(before)
  expect(cgroupsOf(client.hello.daemon)).toEqual(groups)
})

/** The limit below which so many numbers are not taken. */
function withSpare(taken: ReadonlySet<number>, spare: number): number {
  let limit = 0
  for (let free = 0; free < spare || taken.has(limit); limit++) if (!taken.has(limit)) free++
  return limit
}
