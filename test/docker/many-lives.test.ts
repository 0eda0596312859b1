// Containers in numbers, started and stopped again and again: nothing of any is left with the engine, and the daemon is as it was.
import { mkdirSync, readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { configOf, endServe, fixture, place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { holdingsOf, livingMib, observed, residentMib, scratchOf } from '../support/holdings.ts'
import { processesWith } from '../support/leaks.ts'
import { often } from '../support/often.ts'
import { canStartEngine, ownEngine, type OwnEngine } from '../support/own-engine.ts'

const rounds = Math.ceil(often('SALLYPORT_CYCLES', 40) / 4)
/** What may be added to the memory of a daemon, MiB: as without containers, and what the client of the engine keeps for itself */
const flat = { residentMib: 40, livingMib: 6 }

/** What an engine has, by name, and how many processes it has on the machine beside its own two. */
async function kept({ docker, folder, dockerd }: OwnEngine): Promise<object> {
  const [containers, networks, volumes, images] = await Promise.all([
    docker.listContainers({ all: true }),
    docker.listNetworks(),
    docker.listVolumes(),
    docker.listImages({ all: true }),
  ])
  return {
    containers: containers.map(({ Names }) => Names),
    networks: networks.map(({ Name }) => Name).toSorted(),
    volumes: volumes.Volumes.map(({ Name }) => Name),
    images: images.map(({ Id }) => Id).toSorted(),
    processes: processesWith(folder).filter((pid) => pid !== dockerd.pid).length,
  }
}

describe.runIf(canStartEngine)('with containers', () => {
  test(
    `13: after ${rounds * 4} starts and stops the daemon and the engine hold what they held, and the daemon’s memory is flat`,
    async () => {
      await using engine = await ownEngine()
      const names = ['a', 'b', 'c', 'd']
      const servers = Object.fromEntries(names.map((name) => [name, fixture('echo', { driver: 'docker' })]))
      await using at = await place(configOf(servers))
      mkdirSync(scratchOf(at), { mode: 0o700 })
      const running = await serve(at, { ...engine.environment, ...observed(at) })
      const { client } = running
      const { pid } = client.hello
      const cycle = async (): Promise<void> => {
        await Promise.all(names.map((server) => client.call('servers/start', { server })))
        const { servers: listed } = await client.call('servers/list', {})
        expect(listed.map(({ state }) => state)).toEqual(names.map(() => 'connected'))
        await Promise.all(names.map((server) => client.call('servers/stop', { server })))
      }
      const all = async () => ({ daemon: holdingsOf(at, client.hello), engine: await kept(engine) })
      await cycle()
      await cycle()
      // The engine forgets a container a moment after it was removed.
      const before = await eventually(async () => {
        const now = await all()
        expect(now.engine).toMatchObject({ containers: [] })
        expect(await all()).toEqual(now)
        return now.daemon.networks.length === 1 && now
      })
      const [resident, living] = [residentMib(pid), await livingMib(at, pid)]
      const open = (): number => readdirSync(`/proc/${engine.dockerd.pid}/fd`).length
      const descriptors = open()
      for (let round = 0; round < rounds; round++) await cycle()
      const added = residentMib(pid) - resident
      await eventually(async () => expect(await all()).toEqual(before) ?? true)
      expect(added).toBeLessThan(flat.residentMib)
      expect((await livingMib(at, pid)) - living).toBeLessThan(flat.livingMib)
      // Of the engine's own: a request of ours that is still open would be one for each start. It keeps some for itself, and for a while.
      await eventually(() => open() - descriptors < rounds * 2)
      for (const { instances } of (await client.call('servers/list', {})).servers)
        expect(instances).toMatchObject([{ state: 'stopped', pid: null }])
      expect(await client.call('audit/verify', {})).toMatchObject({ ok: true })
      await endServe(running)
      expect(await kept(engine)).toMatchObject({ containers: [] })
    },
    120_000 + rounds * 20_000,
  )
})
