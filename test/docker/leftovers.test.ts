// What many launches and killed daemons leave with an engine of the tests’ own: nothing.
//
// SALLYPORT_TEST_LAUNCHES and SALLYPORT_TEST_KILLS ask for more of each.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { configOf, fixture, place, serve, type Place } from '../support/daemon.ts'
import { canStartEngine, ownEngine, type OwnEngine } from '../support/own-engine.ts'
import { eventually } from '../support/eventually.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { processesWith } from '../support/leaks.ts'

const asked = (variable: string, usual: number): number => Number(process.env[variable] ?? usual)
const launches = asked('SALLYPORT_TEST_LAUNCHES', 8)
const kills = asked('SALLYPORT_TEST_KILLS', 3)
const atOnce = 4

/** All that an engine has, and what the machine has of it: names and numbers. */
const stateOf = async ({ docker }: OwnEngine): Promise<object> => {
  const folder = dirname(((await docker.info()) as { DockerRootDir: string }).DockerRootDir)
  const [containers, networks, volumes, images] = await Promise.all([
    docker.listContainers({ all: true }),
    docker.listNetworks(),
    docker.listVolumes(),
    docker.listImages({ all: true }),
  ])
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return {
    containers: containers.map(({ Names, State }) => [Names, State]),
    networks: networks.map(({ Name }) => Name).toSorted(),
    volumes: volumes.Volumes.map(({ Name }) => Name),
    images: images.map(({ Id }) => Id).toSorted(),
    mounts: mounts.filter((line) => line.includes(folder)).length,
    processes: processesWith(folder).length,
  }
}

describe.runIf(canStartEngine)('nothing is left with an engine', () => {
  let at: OwnEngine
  beforeAll(async () => {
    at = await ownEngine()
  })
  afterAll(() => at[Symbol.asyncDispose]())

  test(
    `by ${launches} launches, ended in every way`,
    async () => {
      await using host = await launchHost({ environment: at.environment })
      const settings = await settingsFor('confined-echo.mjs', [], { driver: 'docker' })
      const one = async (way: number): Promise<void> => {
        await using server = await launchProbe(settings, host)
        if (way === 0) server.stdin.end()
        if (way === 1) server.terminate()
        if (way === 2) server.kill()
        if (way < 3) await server.ended
      }
      await one(0)
      const before = await stateOf(at)
      for (let done = 0; done < launches; done += atOnce)
        await Promise.all(Array.from({ length: atOnce }, (_, way) => one(way)))
      await eventually(async () => JSON.stringify(await stateOf(at)) === JSON.stringify(before)).catch(
        () => undefined,
      )
      expect(await stateOf(at)).toEqual(before)
    },
    60_000 + launches * 2_000,
  )

  test(
    `by a daemon that is killed ${kills} times while it launches, once the next one is there`,
    async () => {
      const config = configOf({ echo: fixture('echo', { start: 'eager' }) }, { driver: 'docker' })
      await using here = await place(config)
      const wholeMs = await answeredMs(here, at)
      const before = await stateOf(at)
      for (let kill = 1; kill <= kills; kill += 1) {
        const daemon = here.start(['serve'], at.environment)
        // From before its door is open to after its server answers.
        await new Promise((resolve) => setTimeout(resolve, wholeMs * (0.3 + (0.8 * kill) / kills)))
        daemon.kill('SIGKILL')
        await once(daemon, 'exit')
      }
      await answeredMs(here, at)
      await eventually(async () => JSON.stringify(await stateOf(at)) === JSON.stringify(before)).catch(
        () => undefined,
      )
      expect(await stateOf(at)).toEqual(before)
      // Notes of containers that the engine was perhaps never asked for are kept for ten minutes, and nothing else.
      const kept = await readdir(join(here.stateDir, 'docker'), { recursive: true, withFileTypes: true })
      const names = kept.filter((entry) => entry.isFile()).map(({ name }) => name)
      expect(names.filter((name) => name !== 'daemon.json' && !name.endsWith('.making'))).toEqual([])
      expect(names.filter((name) => name === 'daemon.json').length).toBeLessThanOrEqual(
        names.filter((name) => name.endsWith('.making')).length,
      )
    },
    60_000 + kills * 10_000,
  )
})

/** Runs a daemon until its server has answered, asks it to end, and returns how long the first took. */
const answeredMs = async (here: Place, at: OwnEngine): Promise<number> => {
  const started = performance.now()
  const { process: daemon, client } = await serve(here, at.environment)
  await client.call('tools/call', { server: 'echo', tool: 'echo', arguments: {} })
  const tookMs = performance.now() - started
  await client[Symbol.asyncDispose]()
  daemon.kill('SIGTERM')
  await once(daemon, 'exit')
  return tookMs
}
