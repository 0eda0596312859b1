// What a daemon that was killed leaves with its engine, and what the next one takes away: that, and nothing else.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { newDaemonId } from '../../src/lib/ids.ts'
import { markOf } from '../../src/sandbox/daemon-mark.ts'
import { labels } from '../../src/sandbox/docker/container.ts'
import { removeOf } from '../../src/sandbox/docker/janitor.ts'
import { emptyRoot } from '../../src/sandbox/docker/empty-root.ts'
import { cuttableEngine } from '../support/cut-engine.ts'
import { engineTest } from '../support/engine.ts'
import type { TestEngine } from '../support/own-engine.ts'
import { eventually } from '../support/eventually.ts'
import { inGoodTime } from '../support/pace.ts'
import { slowEngine } from '../support/slow-engine.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { tempDir } from '../support/temp-dir.ts'

const stateFolder = async () => {
  const state = await tempDir()
  await chmod(state.path, 0o700)
  return state
}

/** Makes a container that nobody started, and removes it in the end. */
const made = async ({ engine }: TestEngine, name: string, daemon: string) => {
  const id = await engine.create(name, {
    Image: await emptyRoot(engine),
    Cmd: ['/nothing'],
    Labels: { [labels.daemon]: daemon },
    HostConfig: { NetworkMode: 'none' },
  })
  return {
    isThere: async () => (await engine.inspect(id)) !== null,
    [Symbol.asyncDispose]: () => engine.remove(id),
  }
}

/** Writes down a daemon of another boot, which is dead for sure. */
const writeDead = async (state: string, socketPath: string): Promise<string> => {
  const daemon = newDaemonId()
  await mkdir(join(state, 'docker', daemon), { recursive: true, mode: 0o700 })
  const mark = { ...markOf(daemon), boot: 'another', engine: `unix://${socketPath}` }
  await writeFile(join(state, 'docker', daemon, 'daemon.json'), JSON.stringify(mark), { mode: 0o600 })
  return daemon
}

const socketOf = ({ environment }: TestEngine): string => environment.DOCKER_HOST.replace('unix://', '')

describe('a daemon that is killed', () => {
  engineTest(
    'leaves no process and no container, and the next one takes its folder away',
    async ({ engine }) => {
      await using state = await stateFolder()
      const daemon = spawn(
        process.execPath,
        [fileURLToPath(new URL('../support/hold-container.ts', import.meta.url)), state.path],
        {
          env: { ...process.env, ...engine.environment },
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      )
      const [line] = (await once(daemon.stdout, 'data')) as [Buffer]
      const initPid = Number(line.toString())
      const [id = ''] = await readdir(join(state.path, 'docker'))
      expect(await engine.engine.list([`${labels.daemon}=${id}`])).toHaveLength(1)
      daemon.kill('SIGKILL')
      await inGoodTime(() => !existsSync(`/proc/${initPid}`), 2_000)
      await eventually(async () => (await engine.engine.list([`${labels.daemon}=${id}`])).length === 0)
      expect(await readdir(join(state.path, 'docker'))).toEqual([id])
      await using _next = await launchHost({ stateDirectory: state.path })
      expect(await readdir(join(state.path, 'docker'))).toEqual([])
    },
  )

  engineTest(
    'while the engine is slow to make a container leaves none: the next one waits for it',
    async ({ engine }) => {
      await using state = await stateFolder()
      await using way = await slowEngine(socketOf(engine))
      const daemon = spawn(
        process.execPath,
        [fileURLToPath(new URL('../support/hold-container.ts', import.meta.url)), state.path],
        { env: { ...process.env, DOCKER_HOST: way.address }, stdio: ['ignore', 'ignore', 'inherit'] },
      )
      await way.asked
      const [id = ''] = await readdir(join(state.path, 'docker'))
      daemon.kill('SIGKILL')
      await once(daemon, 'exit')
      await using _next = await launchHost({ stateDirectory: state.path })
      expect(await readdir(join(state.path, 'docker'))).toEqual([id])
      const made = engine.engine.events(`${labels.daemon}=${id}`, ({ action }) => void heard.push(action))
      const heard: string[] = []
      using _events = { [Symbol.dispose]: () => void made.then((stream) => stream.destroy()) }
      await made
      way.letGo()
      await eventually(() => heard.includes('destroy'))
      expect(heard).toContain('create')
      await eventually(async () => (await readdir(join(state.path, 'docker'))).length === 0)
    },
  )
})

describe('the next daemon', () => {
  engineTest('removes what a dead one made and never started', async ({ engine }) => {
    await using state = await stateFolder()
    const dead = await writeDead(state.path, socketOf(engine))
    await using left = await made(engine, `sallyport-${dead}-i-1`, dead)
    await using _next = await launchHost({ stateDirectory: state.path })
    expect(await left.isThere()).toBe(false)
  })

  engineTest('waits for none that one before it removed, and died of it', async ({ engine }) => {
    await using state = await stateFolder()
    const dead = await writeDead(state.path, socketOf(engine))
    const folder = join(state.path, 'docker', dead)
    await using left = await made(engine, `sallyport-${dead}-i-1`, dead)
    await writeFile(join(folder, `sallyport-${dead}-i-1.making`), '')
    await removeOf(engine.engine, { daemon: dead }, folder)
    await using _next = await launchHost({ stateDirectory: state.path })
    expect(await left.isThere()).toBe(false)
    expect(await readdir(join(state.path, 'docker'))).toEqual([])
  })

  engineTest(
    'leaves what only says that it is one of those, and what is a living one’s',
    async ({ engine }) => {
      await using state = await stateFolder()
      const dead = await writeDead(state.path, socketOf(engine))
      await using labelled = await made(engine, `somebody-else-${dead}`, dead)
      await using living = await launchHost({ stateDirectory: state.path, environment: engine.environment })
      await using server = await launchProbe(await settingsFor('echo.mjs', [], { driver: 'docker' }), living)
      await using _next = await launchHost({ stateDirectory: state.path })
      expect(await labelled.isThere()).toBe(true)
      expect(existsSync(`/proc/${server.initPid}`)).toBe(true)
      expect(await readdir(join(state.path, 'docker'))).not.toContain(dead)
    },
  )

  engineTest('removes the folder of one that was killed before it could write who it was', async () => {
    await using state = await stateFolder()
    await using _living = await launchHost({ stateDirectory: state.path })
    const [living = ''] = (await readdir(join(state.path, 'daemons'))).map((name) =>
      name.replace('.json', ''),
    )
    for (const name of [newDaemonId(), living])
      await mkdir(join(state.path, 'docker', name), { recursive: true, mode: 0o700 })
    await using _next = await launchHost({ stateDirectory: state.path })
    expect(await readdir(join(state.path, 'docker'))).toEqual([living])
  })

  engineTest(
    'starts where the engine of a dead one is gone, and leaves the work to the one after it',
    async () => {
      await using state = await stateFolder()
      const dead = await writeDead(state.path, '/nonexistent/engine.sock')
      await using _next = await launchHost({ stateDirectory: state.path })
      expect(await readdir(join(state.path, 'docker'))).toEqual([dead])
    },
  )

  engineTest(
    'waits for an engine that hangs once, however many had it, and leaves all to the one after it',
    async ({ engine }) => {
      await using way = await cuttableEngine(socketOf(engine))
      await using state = await stateFolder()
      const dead = await Promise.all(
        [1, 2, 3, 4].map(() => writeDead(state.path, way.address.replace('unix://', ''))),
      )
      way.hang()
      const began = performance.now()
      await using _next = await launchHost({ stateDirectory: state.path })
      expect(performance.now() - began).toBeLessThan(15_000)
      expect(await readdir(join(state.path, 'docker'))).toEqual(dead.toSorted())
    },
  )
})
