// What befalls a daemon and its sandboxes from outside. Every fault ends by itself, and then all must be as it was.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'
import { hostKill } from '../support/cgroup-host.ts'
import type { ChildProcess } from '../support/leaks.ts'
import type { Chance } from './chance.ts'
import type { Containers } from './containers.ts'
import { takeRoom } from './disk.ts'
import { essential, isBeside, limit, onePart, partsOf, signal, stopped } from './parts.ts'
import type { Stage } from './stage.ts'

interface Scene {
  readonly stage: Stage
  readonly chance: Chance
  readonly containers: Containers | null
}

interface Fault {
  /** How often, beside the others */
  readonly weight: number
  /** Whether the daemon ends by it, or may */
  readonly isFatal?: boolean
  /** Returns what it did, for people */
  readonly befall: (scene: Scene) => Promise<string>
}

const day = 86_400_000

/** One of a kind is killed as soon as there is one, which is waited for. */
const killed = (isOfKind: (part: ChildProcess) => boolean): Fault => ({
  weight: 1,
  async befall({ stage, chance }) {
    const parts = await eventually(() => {
      const all = partsOf(stage).filter(isOfKind)
      return all.length > 0 && all
    }, 3000).catch(() => [])
    if (parts.length === 0) return 'there was none'
    signal(chance.pick(parts).pid, 'SIGKILL')
    return 'killed'
  },
})

const faults: Readonly<Record<string, Fault>> = {
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
    befall: ({ stage, chance }) => stopped(stage.pid, chance.between(50, 2000)),
  },
  ...Object.fromEntries(
    Object.entries(essential).map(([name, isOfKind]) => [`${name} is killed`, killed(isOfKind)]),
  ),
  'a part of a sandbox is killed': {
    weight: 3,
    async befall({ stage, chance }) {
      const part = onePart(chance, partsOf(stage))
      if (part === null) return 'there was none'
      signal(part.pid, 'SIGKILL')
      return part.name
    },
  },
  'a part of a sandbox stands still': {
    weight: 3,
    async befall({ stage, chance }) {
      const part = onePart(chance, partsOf(stage))
      if (part === null) return 'there was none'
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
      if (pid === null) return 'no daemon'
      const ms = chance.between(100, 1500)
      try {
        const most = Math.max(...readdirSync(`/proc/${pid}/fd`).map(Number))
        const soft = chance.between(3, most + 12)
        const mend = limit(pid, 'nofile', soft)
        await delay(ms)
        mend()
        return `none from ${soft} on for ${ms} ms, and it has up to ${most}`
      } catch {
        return 'it ended meanwhile'
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
      if (containers === null) return 'there is no engine'
      const ids = await eventually(async () => {
        const all = await containers.ids()
        return all.length > 0 && all
      }, 5000).catch(() => [])
      if (ids.length === 0) return 'there was none'
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
}

/**
 * Lets one fault after the other befall the daemon, with pauses between, until that is over: of all, or of those alone
 * that a daemon has to survive. Says which of them there was no time for.
 */
export async function misfortune(
  scene: Scene & { readonly signal: AbortSignal; readonly isSpared: boolean },
): Promise<void> {
  const { stage, chance, signal: over, containers, isSpared } = scene
  const weights = Object.entries(faults)
    .filter(
      ([name, { isFatal }]) => (containers !== null || !name.includes('container')) && !(isSpared && isFatal),
    )
    .map(([name, { weight }]) => [weight, name] as const)
  const missing = new Set(weights.map(([, name]) => name))
  for (const name of course(chance, weights)) {
    await delay(chance.between(50, 1500))
    if (over.aborted) break
    const what = await faults[name]?.befall(scene)
    stage.account.count('faults', name)
    missing.delete(name)
    stage.account.say(`${name}: ${what}`)
  }
  if (missing.size > 0) stage.account.say(`no time for these: ${[...missing].join('; ')}`)
  stage.setClock(0)
}

/** Every fault once in any order, since a short run is to have each of them, and from then on as often as they weigh. */
function* course(chance: Chance, weights: readonly (readonly [number, string])[]): Generator<string> {
  const first = [...weights]
  while (first.length > 0) yield* first.splice(chance.between(0, first.length - 1), 1).map(([, name]) => name)
  for (;;) yield chance.weighed(weights)
}

async function again(stage: Stage, chance: Chance): Promise<string> {
  const ms = chance.between(0, 500)
  await delay(ms)
  return `${(await stage.start()) ? 'up' : 'not up'} again after ${ms} ms`
}
