// What nobody has called for a while is ended by Sallyport itself: whoever calls during that end gets an answer all the same.
import { expect, test } from 'vitest'
import type { ServerSettings } from '../../src/schema/settings.ts'
import type { Happening } from '../../src/supervisor/ports.ts'
import { eventually } from '../support/eventually.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { sharing, shares } from '../support/sharing.ts'
import { caller, type Supervised, superviseAll } from '../support/supervisor.ts'

const waiting = { signal: new AbortController().signal }
const operator = caller(0, 'operator')
const timeouts = { initializeMs: 10_000, callMs: 20_000, idleMs: 50 }

/** A server that takes its time to end, though nobody calls it. */
const stubborn = (more: Partial<ServerSettings> = {}): ServerSettings =>
  serverSettings('ignore-sigterm.mjs', { timeouts, stop: { eofMs: 100, termMs: 400 }, ...more })

/** Whoever stops it meanwhile comes in time on a busy machine, too. */
const slowly = { stop: { eofMs: 100, termMs: 3000 } }

const call = ({ supervisor }: Supervised, tool = 'echo'): Promise<unknown> =>
  supervisor
    .call(
      caller(),
      {
        server: 'fixture',
        tool,
        arguments: { raw: '{"text":"x"}' },
        timeoutMs: null,
        generation: null,
        lineage: null,
      },
      waiting,
    )
    .catch((error: unknown) => error)

const statesOf = ({ events }: { readonly events: readonly Happening[] }): readonly unknown[] =>
  events.filter(({ type }) => type === 'instance/state').map(({ detail }) => detail['to'])

/** Resolves in the midst of the end that nobody asked for. */
const ending = (all: Supervised): Promise<unknown> => {
  const before = all.events.length
  return eventually(() =>
    all.events
      .slice(before)
      .find(({ detail }) => detail['to'] === 'draining' && detail['reason'] === 'no call for 50 ms'),
  )
}

test('a call that comes while its server is ended for want of calls waits for that, and is answered by the next process', async () => {
  await using all = await superviseAll([stubborn()])
  expect(await call(all)).toMatchObject({ type: 'output' })
  await ending(all)
  const calls = await Promise.all([call(all), call(all), call(all)])
  expect(calls).toMatchObject([{ type: 'output' }, { type: 'output' }, { type: 'output' }])
  expect(all.launches()).toBe(2)
  expect(statesOf(all).slice(0, 7)).toEqual([
    'starting',
    'ready',
    'draining',
    'stopping',
    'stopped',
    'starting',
    'ready',
  ])
})

test('one whose server somebody stops meanwhile is told so, and starts nothing', async () => {
  await using all = await superviseAll([stubborn(slowly)])
  await call(all)
  await ending(all)
  const made = call(all)
  await all.supervisor.stop(operator, 'fixture')
  expect(await made).toMatchObject({
    code: 'ERR_SERVER_UNAVAILABLE',
    message: 'mcp server fixture is unavailable: operator 0 stopped it',
  })
  expect(all.launches()).toBe(1)
})

test('one whose server is quarantined meanwhile is told so, and starts nothing', async () => {
  await using all = await superviseAll([stubborn(slowly)])
  await call(all)
  await ending(all)
  const made = call(all)
  await all.supervisor.quarantine('fixture', 'of no use')
  expect(await made).toMatchObject({
    code: 'ERR_SERVER_UNAVAILABLE',
    message: expect.stringContaining('it is quarantined: of no use'),
  })
  expect(all.launches()).toBe(1)
})

test('a call that is cancelled meanwhile waits no longer, and the server rests', async () => {
  await using all = await superviseAll([stubborn()])
  await call(all)
  await ending(all)
  const controller = new AbortController()
  const started = all.supervisor.start(caller(), 'fixture', { signal: controller.signal })
  controller.abort(new Error('given up'))
  await expect(started).rejects.toThrow('given up')
  await eventually(() => statesOf(all).at(-1) === 'stopped')
  expect(all.launches()).toBe(1)
})

test('a call that waits until the lists are read again keeps its server up', async () => {
  await using all = await superviseAll([serverSettings('slow-list.mjs', { timeouts })])
  expect(await call(all, 't')).toMatchObject({ type: 'output' })
  expect(await call(all, 't')).toMatchObject({ type: 'output' })
  expect(all.launches()).toBe(1)
  await eventually(() => statesOf(all).at(-1) === 'stopped')
})

test('a session that comes while the process it shares is ended for want of sessions has the next one', async () => {
  await using all = await sharing(
    shares({ timeouts, stop: { eofMs: 2000, termMs: 400 }, args: [fixture('shares.mjs'), 'lingers'] }),
  )
  const one = await all.host()
  expect(await one.call(1, 'pid')).toMatch(/^\d+$/)
  await one[Symbol.asyncDispose]()
  await ending(all)
  const two = await all.host()
  expect(await two.call(1, 'pid')).toMatch(/^\d+$/)
  expect(all.launches()).toBe(2)
})

test('whoever calls a server that is ended for its own fault hears which one that is', async () => {
  const restart = { scheduleS: [60], jitter: 0, steadyS: 60, startAttempts: 3, storm: 10 }
  const server = serverSettings('closes-stdout.mjs', { restart, stop: { eofMs: 2000, termMs: 2000 } })
  await using all = await superviseAll([server])
  const said = await call(all)
  expect(statesOf(all).at(-1)).toBe('draining')
  expect(await call(all)).toMatchObject({ message: (said as Error).message })
  expect(all.supervisor.get(operator, 'fixture').instances).toMatchObject([
    { state: 'draining', reason: 'it closed its output' },
  ])
})

test('what was ended for want of calls, or stopped, says so, and its next start is no restart', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs', { timeouts })])
  const view = () => all.supervisor.list(operator)[0]?.instances[0]
  for (let round = 0; round < 2; round++) {
    await call(all)
    const stopped = await eventually(() => view()?.state === 'stopped' && view())
    expect(stopped).toMatchObject({ restarts: 0, reason: 'no call for 50 ms; it exited with status 0' })
  }
  await all.supervisor.start(operator, 'fixture', waiting)
  await all.supervisor.stop(operator, 'fixture')
  expect(view()).toMatchObject({
    restarts: 0,
    reason: expect.stringMatching(/\w; it exited with status 0$/) as string,
  })
})
