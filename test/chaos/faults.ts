// What befalls a daemon and its sandboxes from outside. Every fault ends by itself, and then all must be as it was.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'
import { hostKill } from '../support/cgroup-host.ts'
import type { ChildProcess } from '../support/leaks.ts'
import { configurationFaults } from './configured.ts'
import { takeRoom } from './disk.ts'
import { leaseFaults } from './in-flight.ts'
import { journalFaults } from './journal-folder.ts'
import { essential, isBeside, limit, onePart, partsOf, signal, stopped } from './parts.ts'
import { rivalFaults } from './rivals.ts'
import { again, type Fault, Missed } from './scene.ts'
import { smallDiskFaults } from './small-disks.ts'

const day = 86_400_000

/** One of a kind is killed as soon as there is one, which is waited for. */
const killed = (isOfKind: (part: ChildProcess) => boolean): Fault => ({
  weight: 1,
  async befall({ stage, chance }) {
    const parts = await eventually(() => {
      const all = partsOf(stage).filter(isOfKind)
      return all.length > 0 && all
    }, 3000).catch(() => [])
    if (parts.length === 0) return new Missed('there was none')
    signal(chance.pick(parts).pid, 'SIGKILL')
    return 'killed'
  },
})

/** All of them, by what they are called. */
export const faults: Readonly<Record<string, Fault>> = {
  'the daemon is killed': {
    weight: 1.5,
    isFatal: true,
    async befall({ stage, chance }) {
      await stage.kill()
      return again(stage, chance)
    },
  },
  'the daemon is killed as it starts': {
    weight: 0.5,
    isFatal: true,
    async befall({ stage, chance }) {
      await stage.kill()
      const started = stage.start()
      await delay(chance.between(0, 600))
      await stage.kill()
      await started
      return again(stage, chance)
    },
  },
  'the daemon and its guard are killed': {
    weight: 0.5,
    isFatal: true,
    async befall({ stage, chance }) {
      const guards = partsOf(stage).filter(({ name }) => name === 'sallyport-init')
      for (const { pid } of guards) signal(pid, 'SIGKILL')
      await stage.kill()
      return again(stage, chance)
    },
  },
  'the daemon is killed while much of it stands still': {
    weight: 0.5,
    isFatal: true,
    async befall({ stage, chance }) {
      // Without control groups a sandbox ends only once whoever stopped it lets it go on, and a launcher may be one by then.
      const endsStopped = hostKill === null ? isBeside : () => true
      for (const { pid } of partsOf(stage)) if (endsStopped(pid) && chance.percent(60)) signal(pid, 'SIGSTOP')
      await stage.kill()
      return again(stage, chance)
    },
  },
  'the daemon is ended': {
    weight: 0.5,
    isFatal: true,
    async befall({ stage, chance }) {
      await stage.end()
      return again(stage, chance)
    },
  },
  'the daemon’s socket is taken away': {
    weight: 0.3,
    isFatal: true,
    async befall({ stage, chance }) {
      const door = chance.pick(['host/host.sock', 'operator/operator.sock'])
      await stage.standDown(() => rmSync(join(stage.at.runtimeDir, door), { force: true }))
      return again(stage, chance)
    },
  },
  'the daemon stands still': {
    weight: 1,
    befall: async ({ stage: { pid }, chance }) =>
      pid === null ? new Missed('no daemon') : stopped(pid, chance.between(50, 2000)),
  },
  ...Object.fromEntries(
    Object.entries(essential).map(([name, isOfKind]) => [`${name} is killed`, killed(isOfKind)]),
  ),
  'a part of a sandbox is killed': {
    weight: 3,
    async befall({ stage, chance }) {
      const part = onePart(chance, partsOf(stage))
      if (part === null) return new Missed('there was none')
      signal(part.pid, 'SIGKILL')
      return part.name
    },
  },
  'a part of a sandbox stands still': {
    weight: 3,
    async befall({ stage, chance }) {
      const part = onePart(chance, partsOf(stage))
      if (part === null) return new Missed('there was none')
      return `${part.name}: ${await stopped(part.pid, chance.between(50, 3000))}`
    },
  },
  'the disk is full': {
    weight: 2,
    async befall({ stage, chance }) {
      const ms = chance.between(100, 1500)
      const mend = takeRoom(stage)
      await delay(ms)
      mend()
      return `${ms} ms`
    },
  },
  'descriptors run out': {
    weight: 2,
    async befall({ stage: { pid }, chance }) {
      if (pid === null) return new Missed('no daemon')
      const ms = chance.between(100, 1500)
      try {
        const most = Math.max(...readdirSync(`/proc/${pid}/fd`).map(Number))
        const soft = chance.between(3, most + 12)
        const mend = limit(pid, 'nofile', soft)
        await delay(ms)
        mend()
        return `none from ${soft} on for ${ms} ms, and it has up to ${most}`
      } catch {
        return new Missed('it ended meanwhile')
      }
    },
  },
  'memory runs short': {
    weight: 1,
    isFatal: true,
    async befall({ stage, chance }) {
      const ms = chance.between(100, 1500)
      const spareMib = chance.between(0, 24)
      const isUp = await stage.outlives(async (pid) => {
        const dataKib = Number(/^VmData:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
        const mend = limit(pid, 'data', (dataKib + spareMib * 1024) * 1024)
        await delay(ms)
        mend()
      })
      const said = `${spareMib} MiB more for ${ms} ms`
      return isUp ? said : `${said}, of which it died: ${await again(stage, chance)}`
    },
  },
  'no process can be made': {
    weight: 1.5,
    async befall({ stage: { fault }, chance }) {
      const ms = chance.between(100, 1500)
      fault.arm({ fork: 'ENOMEM' })
      await delay(ms)
      fault.disarm()
      return `${ms} ms`
    },
  },
  'the clock jumps': {
    weight: 2,
    async befall({ stage, chance }) {
      const offset = chance.pick([-400 * day, -day, -60_000, -1000, 0, 0, 1000, 60_000, day, 400 * day])
      stage.setClock(offset)
      return `to ${offset / 1000} s`
    },
  },
  'a container is killed': {
    weight: 2,
    async befall({ containers, chance }) {
      if (containers === null) return new Missed('there is no engine')
      const ids = await eventually(async () => {
        const all = await containers.ids()
        return all.length > 0 && all
      }, 5000).catch(() => [])
      if (ids.length === 0) return new Missed('there was none')
      await containers.kill(chance.pick(ids))
      return 'killed'
    },
  },
  'the container engine is killed': {
    weight: 0.5,
    async befall({ containers, chance }) {
      const ms = chance.between(0, 2000)
      await containers?.outage(ms)
      return `up again after ${ms} ms`
    },
  },
  'the container engine stands still': {
    weight: 1,
    async befall({ containers, chance }) {
      const ms = chance.between(50, 3000)
      await containers?.pause(ms)
      return `${ms} ms`
    },
  },
  ...configurationFaults,
  ...journalFaults,
  ...leaseFaults,
  ...rivalFaults,
  ...smallDiskFaults,
}
