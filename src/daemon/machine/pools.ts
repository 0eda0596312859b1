// The pools of all servers that have a process for each call: who has one, how much memory they hold, when they are given up.
import { isDeepStrictEqual } from 'node:util'
import { SallyportError } from '../../errors.ts'
import type { PoolView } from '../../rpc/pool-view.ts'
import type { LaunchRequest, WarmSandbox } from '../../sandbox/launch.ts'
import { usedMemory } from '../../sandbox/limits/watchdog.ts'
import type { Waiting } from '../../schema/governor.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../../schema/settings.ts'
import type { Emit, WarmPools } from '../../supervisor/ports.ts'
import type { Outfit } from './outfit.ts'
import type { Outfits, WarmOutfits } from './outfits.ts'
import { Pool } from './pool.ts'

/**
 * What a sandbox that waits counts as at least, bytes: its namespaces and mounts are the kernel's, and around a container stands a
 * process of the engine's.
 */
const leastBytes = { bubblewrap: 1 << 20, docker: 16 << 20 } as const

/** From a server's use until what waits for its next calls is built: a quick call is answered by then, ms. */
const restMs = 20

export interface PoolsOptions {
  readonly settings: Settings
  readonly profileOf: (server: ServerSettings) => ProfileSettings
  readonly outfits: Pick<Outfits, 'forCallToCome'>
  /** Whether a hold stands on the whole server: then none of its calls comes */
  readonly isHeld: (server: string) => boolean
  readonly launchToGate: (request: LaunchRequest, waiting: Waiting) => Promise<WarmSandbox>
  readonly emit: Emit
}

/** Whoever made it disposes of it, before what it launches on. */
export class Pools implements WarmPools, WarmOutfits, AsyncDisposable {
  readonly #options: PoolsOptions
  readonly #pools = new Map<string, Pool>()
  readonly #soon = new Map<string, NodeJS.Timeout>()
  readonly #ending = new Set<Promise<unknown>>()
  #isClosed = false

  constructor(options: PoolsOptions) {
    this.#options = options
  }

  prepare(name: string): void {
    if (this.#soon.has(name)) return
    const timer = setTimeout(() => {
      this.#soon.delete(name)
      this.#fill(name)
    }, restMs)
    this.#soon.set(name, timer.unref())
  }

  #fill(name: string): void {
    const server = this.#options.settings.servers.get(name)
    if (this.#isClosed || server === undefined || server.instance !== 'call' || server.pool.size === 0) return
    if (this.#options.isHeld(name)) return
    const known = this.#pools.get(name)
    if (known !== undefined && isDeepStrictEqual(known.server, server)) return known.fill()
    if (known !== undefined) void this.drain(name, 'its settings are other ones now')
    const pool = this.#make(server)
    this.#pools.set(name, pool)
    pool.fill()
  }

  draw(server: ServerSettings): Outfit | null {
    const pool = this.#pools.get(server.name)
    if (pool === undefined || !isDeepStrictEqual(pool.server, server)) return null
    return pool.draw()
  }

  async fits({ server: { name }, warm }: Outfit, waiting: Waiting): Promise<boolean> {
    const { settings, profileOf } = this.#options
    const server = settings.servers.get(name)
    if (server === undefined || warm === null) return false
    try {
      if (await warm.fits({ server, profile: profileOf(server), settings }, waiting)) {
        const flaw = flawOf(warm)
        if (flaw === null) return true
        this.lost(name, flaw)
        return false
      }
    } catch (error) {
      // What is wrong with such a launch is said by the launch that is made in its place.
      if (waiting.signal.aborted) throw error
    }
    void this.drain(name, 'a launch would not be planned now as they were')
    return false
  }

  /** One was drawn that is of no use. Nothing of the server has run in it: the call has another, which is no second try of anything. */
  lost(name: string, flaw: string): void {
    this.#pools.get(name)?.unfit()
    this.#tell(name, 'pool/lost', { reason: `a sandbox that waited for a call ${flaw} when one took it` })
  }

  async drain(name: string, reason: string): Promise<void> {
    clearTimeout(this.#soon.get(name))
    this.#soon.delete(name)
    const pool = this.#pools.get(name)
    if (pool === undefined) return
    this.#pools.delete(name)
    const { waiting } = pool.view()
    if (waiting > 0) this.#tell(name, 'pool/drained', { waiting, reason })
    const gone = pool[Symbol.asyncDispose]()
    this.#ending.add(gone)
    try {
      await gone
    } finally {
      this.#ending.delete(gone)
    }
    this.#refill()
  }

  /** The settings are other ones: what waits beyond their bound on memory is given up, and what has room now is built. */
  trim(): void {
    this.#giveUp(0, () => true)
    this.#refill()
  }

  #refill(): void {
    for (const pool of this.#pools.values()) pool.refill()
  }

  view(name: string): PoolView | null {
    const server = this.#options.settings.servers.get(name)
    if (server === undefined || server.instance !== 'call') return null
    return this.#pools.get(name)?.view() ?? { ...nothingYet, size: server.pool.size }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    for (const name of this.#pools.keys()) void this.drain(name, 'Sallyport is stopping')
    await Promise.all(this.#ending)
  }

  #make(server: ServerSettings): Pool {
    const { name, driver } = server
    const pool: Pool = new Pool(
      {
        server,
        build: (signal) => this.#build(server, signal),
        measure: ({ initPid }) =>
          Math.max(
            leastBytes[driver],
            initPid === 0 ? 0 : usedMemory({ initPid, tmpfs: [], limitBytes: Infinity }),
          ),
        hasRoomFor: (bytes) => this.#makeRoom(pool, bytes ?? leastBytes[driver]),
        tell: (type, detail) => this.#tell(name, type, detail),
        random: Math.random,
      },
      () => void this.drain(name, `no call for ${server.timeouts.idleMs} ms`),
    )
    return pool
  }

  async #build(server: ServerSettings, signal: AbortSignal): Promise<Outfit> {
    const { settings, profileOf, outfits, launchToGate } = this.#options
    const profile = profileOf(server)
    const outfit = outfits.forCallToCome(server)
    try {
      const supply = await outfit.supply(profile)
      const { instance } = outfit
      outfit.keepWarm(await launchToGate({ server, profile, settings, instance, supply }, { signal }))
      return outfit
    } catch (error) {
      await outfit[Symbol.asyncDispose]()
      throw signal.aborted ? SallyportError.from(signal.reason) : error
    }
  }

  /** Where it is too much, servers that were used longer ago give up what waits for them. */
  #makeRoom(asking: Pool, bytes: number): boolean {
    return this.#giveUp(bytes, (pool) => pool !== asking && pool.usedAt < asking.usedAt)
  }

  /** Gives up what waits in pools that may be asked to, longest unused first, until so many bytes more may be held. */
  #giveUp(bytes: number, mayAsk: (pool: Pool) => boolean): boolean {
    const most = this.#options.settings.pool.memoryBytes
    const held = (): number => [...this.#pools.values()].reduce((sum, pool) => sum + pool.bytes, 0)
    while (held() + bytes > most) {
      const others = [...this.#pools.values()].filter((pool) => !pool.isEmpty && mayAsk(pool))
      const [oldest] = others.toSorted((one, other) => one.usedAt - other.usedAt)
      if (oldest === undefined) return false
      void oldest.giveUpOne()
    }
    return true
  }

  #tell(server: string, type: string, detail: Readonly<Record<string, unknown>>): void {
    this.#options.emit({ type, server, instance: null, principal: null, detail })
  }
}

/** Why it would not answer its call, or not in time; null where it will. */
function flawOf(warm: WarmSandbox): string | null {
  if (warm.isLost()) return 'had ended'
  return warm.isStopped() ? 'stood still, stopped by a signal or paused,' : null
}

const nothingYet = { waiting: 0, memory_bytes: 0, drawn: 0, missed: 0, lost: 0, reason: null } as const
