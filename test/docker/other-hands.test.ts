// Containers at the hands of others, who kill, pause or cut them off: who waits hears of it at once, and what is told of it is true.
import { describe, expect } from 'vitest'
import { identify } from '../../src/sandbox/proof.ts'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { cuttableEngine } from '../support/cut-engine.ts'
import { engineTest } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import type { TestEngine } from '../support/own-engine.ts'
import { poolOf, run, runs, waits } from '../support/pool.ts'
import { recordsAbout } from '../support/reaching-out.ts'

const socketOf = ({ environment }: TestEngine): string => environment.DOCKER_HOST.replace('unix://', '')

/** The containers of a daemon. */
const containersOf = async ({ docker }: TestEngine, { client }: TestDaemon) => {
  const label = [`io.sallyport.daemon=${client.hello.daemon}`]
  const listed = await docker.listContainers({ all: true, filters: { label } })
  return listed.map(({ Id }) => docker.getContainer(Id))
}

/** The container that waits for a call: no instance has it. */
const waitingContainer = async (engine: TestEngine, at: TestDaemon) => {
  const { instances } = await at.client.call('servers/get', { server: 'runs' })
  for (const one of await containersOf(engine, at)) {
    const { Pid } = (await one.inspect()).State
    if (instances.every(({ pid }) => pid !== Pid)) return { one, pid: Pid }
  }
  throw new Error('no container waits')
}

/** Begins a call that nobody answers soon, and returns it once it is on record. */
const callThatLasts = async (at: TestDaemon): Promise<{ readonly refused: Promise<unknown> }> => {
  await at.client.call('servers/start', { server: 'slow' })
  const called = at.client.call('tools/call', { server: 'slow', tool: 'wait', arguments: { ms: 30_000 } })
  const refused = called.then(
    () => null,
    (error: unknown) => error,
  )
  await eventually(() => recordsAbout(at, 'call.intent', 'slow').length > 0)
  return { refused }
}

const boxed = (more: object = {}) => configOf({ slow: fixture('slow', more) }, { driver: 'docker' })

/** What a server that says nothing would take to be given up */
const initializeMs = 60_000

describe('a container', () => {
  engineTest(
    'that somebody kills amid a call fails it at once, and says that it was lost',
    async ({ engine }) => {
      await using at = await daemon(boxed(), engine.environment)
      for (let round = 0; round < 3; round++) {
        const { refused } = await callThatLasts(at)
        const [container] = await containersOf(engine, at)
        await container?.kill()
        expect(await refused).toMatchObject({
          code: 'ERR_SERVER_UNAVAILABLE',
          message: 'mcp server slow is unavailable: its sandbox was lost',
        })
        await at.client.call('servers/stop', { server: 'slow' })
      }
    },
  )

  engineTest(
    'whose engine breaks off amid a word ends as with an engine that goes away, and the daemon goes on',
    async ({ engine }) => {
      await using way = await cuttableEngine(socketOf(engine))
      await using at = await daemon(boxed(), { DOCKER_HOST: way.address })
      const { refused } = await callThatLasts(at)
      way.say(/^GET \S*\/events\?/, '9\r\n{"Actor":\r\n0\r\n\r\n')
      expect(await refused).toMatchObject({
        code: 'ERR_SERVER_UNAVAILABLE',
        message:
          'mcp server slow is unavailable: the engine that its container ran on went away, and it was ended',
      })
      await eventually(() => at.client.call('servers/start', { server: 'slow' }))
    },
  )

  engineTest('whose output comes in no frames any more is ended at once', async ({ engine }) => {
    await using way = await cuttableEngine(socketOf(engine))
    await using at = await daemon(boxed(), { DOCKER_HOST: way.address })
    const { refused } = await callThatLasts(at)
    way.say(/^POST \S*\/attach\?\S*stdout=(1|true)/, 'no frame')
    expect(await refused).toMatchObject({
      code: 'ERR_SERVER_UNAVAILABLE',
      message: 'mcp server slow is unavailable: its sandbox was lost',
    })
  })

  engineTest('that somebody has paused is shown so for as long as it is', async ({ engine }) => {
    await using at = await daemon(boxed(), engine.environment)
    await at.client.call('servers/start', { server: 'slow' })
    const why = async () => (await at.client.call('servers/get', { server: 'slow' })).instances[0]?.reason
    const [container] = await containersOf(engine, at)
    expect(await why()).toBeNull()
    await container?.pause()
    await eventually(async () => /its container is paused/.test((await why()) ?? ''))
    await container?.unpause()
    await eventually(async () => (await why()) === null)
  })

  for (const [way, kind] of [
    ['was paused', 'container'],
    ['whose shim was stopped', 'shim'],
  ] as const)
    engineTest(
      `that waited for a call and ${way} costs it nothing: the call has another`,
      async ({ engine }) => {
        const timeouts = { initialize_ms: initializeMs }
        const server = runs({ pool: { size: 1 }, driver: 'docker', timeouts })
        await using at = await daemon(configOf({ runs: server }), engine.environment)
        await at.client.call('servers/start', { server: 'runs' })
        await waits(at, 1)
        const { one, pid } = await waitingContainer(engine, at)
        const shim = identify(pid)?.parent ?? 0
        if (kind === 'container') await one.pause()
        else process.kill(shim, 'SIGSTOP')
        try {
          const began = performance.now()
          expect(await run(at, 'echo ran')).toBe('ran\n')
          expect(performance.now() - began).toBeLessThan(initializeMs)
          expect(await poolOf(at)).toMatchObject({ drawn: 0, missed: 1, lost: 1 })
        } finally {
          if (kind === 'shim') process.kill(shim, 'SIGCONT')
        }
        await eventually(async () => (await one.inspect().catch(() => null)) === null)
      },
    )
})
