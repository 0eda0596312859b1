// Servers in numbers, started and stopped again and again or all at once: nothing of any is left, and the daemon is as it was.
import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { expectAftermath } from '../support/aftermath.ts'
import { attached } from '../support/attached.ts'
import { configOf, daemon, endServe, fixture, place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { holdingsOf, livingMib, observed, residentMib, scratchOf } from '../support/holdings.ts'
import { cgroupsOf, descendantsOf } from '../support/leaks.ts'
import { longestMs } from '../support/patience.ts'
import { often } from '../support/often.ts'
import { buildProbe } from '../support/probe.ts'

/** Servers that start and stop at once: the smallest there are, since it is the daemon that is looked at */
const names = Array.from({ length: 12 }, (_, n) => `tiny${n}`)
const rounds = Math.ceil(often('SALLYPORT_CYCLES', 1000) / names.length)
/** Until code is compiled and what V8 allocates in has grown as far as it may: docs/faults.md has the curve */
const roundsBefore = 20
/** What so many lives may add: less than twice of what V8 allocates in */
const mostAdded = { residentMib: 40, livingMib: 4 }
const children = 50

test(
  `13: after ${rounds * names.length} starts and stops the daemon holds what it held of the machine, and its memory is flat`,
  async () => {
    const timeouts = { initialize_ms: 60_000 } // twelve launches at once, where others are at work
    const entry = { command: 'tiny', profile: 'offline', trust: 'trusted', acceptance: 'first-use', timeouts }
    await using at = await place(
      configOf(Object.fromEntries(names.map((name) => [name, entry])), {
        allowed_commands: [{ name: 'tiny', path: buildProbe('../../scale/server') }],
      }),
    )
    mkdirSync(scratchOf(at), { mode: 0o700 })
    const running = await serve(at, observed(at))
    const { client } = running
    const { pid } = client.hello
    const cycle = async (): Promise<void> => {
      await Promise.all(names.map((server) => client.call('servers/start', { server })))
      await Promise.all(names.map((server) => client.call('servers/stop', { server })))
    }
    for (let round = 0; round < roundsBefore; round++) await cycle()
    // The launcher of the next sandbox comes a moment after the last has gone.
    const settled = () =>
      eventually(() => {
        const now = holdingsOf(at, client.hello)
        return now.children.length === 3 && now.networks.length === 1 && now
      })
    const before = await settled()
    const [resident, living] = [residentMib(pid), await livingMib(at, pid)]
    for (let round = 0; round < rounds; round++) await cycle()
    const added = residentMib(pid) - resident
    await eventually(() => expect(holdingsOf(at, client.hello)).toEqual(before) ?? true)
    expect(added).toBeLessThan(mostAdded.residentMib)
    expect((await livingMib(at, pid)) - living).toBeLessThan(mostAdded.livingMib)
    for (const { instances } of (await client.call('servers/list', {})).servers)
      expect(instances).toMatchObject([{ state: 'stopped', pid: null }])
    await expectAftermath(at, client)
    await endServe(running)
  },
  longestMs,
)

test(`12: a daemon that is killed with ${children} servers leaves none of them, and the next one starts with none`, async () => {
  await using at = await daemon(configOf({ echo: fixture('echo', { timeouts: { initialize_ms: 60_000 } }) }))
  const { pid, daemon: id } = at.client.hello
  const second = await at.run(['serve'])
  expect(second).toMatchObject({ status: 1, stderr: expect.stringContaining(`daemon ${pid} already serves`) })
  const sessions = await Promise.all(
    Array.from({ length: children }, async () => {
      const session = await attached(at, 'echo')
      expect((await session.call('echo', { text: 'a' })).error).toBeUndefined()
      return session
    }),
  )
  expect((await at.client.call('servers/get', { server: 'echo' })).instances).toHaveLength(children)
  const below = descendantsOf(pid).map((child) => child.pid)
  expect(below.length).toBeGreaterThan(children * 3)
  const ended = once(at.process, 'exit')
  at.process.kill('SIGKILL')
  await ended
  await eventually(() => below.every((child) => !isThere(child)))
  for (const session of sessions) await session[Symbol.asyncDispose]()
  const { process: again, client } = await serve(at)
  await using next = client
  expect(cgroupsOf(id)).toEqual([])
  expect((await next.call('servers/get', { server: 'echo' })).instances).toEqual([])
  await next.call('tools/call', { server: 'echo', tool: 'echo', arguments: {} })
  await expectAftermath(at, next)
  const down = once(again, 'exit')
  again.kill('SIGTERM')
  expect(await down).toEqual([0, null])
})

function isThere(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
