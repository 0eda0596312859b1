// The phases of a run: everybody at work while everything befalls them, the recovery, and the calm after it.
import { setTimeout as delay } from 'node:timers/promises'
import { SallyportError } from '../../src/errors.ts'
import type { Undoing } from '../support/broken-off.ts'
import { eventually } from '../support/eventually.ts'
import type { Chance } from './chance.ts'
import type { Containers } from './containers.ts'
import { misfortune } from './faults.ts'
import { controlHost, sessionHost, type World } from './hosts.ts'
import type { Ledger } from './ledger.ts'
import { operator, releaseAll } from './operator.ts'
import { plantMore } from './plants.ts'
import { atRest } from './rest.ts'
import type { Stage } from './stage.ts'

/** How long those at work may need to hear that the run is broken off, ms: the longest fault, and a daemon's start */
const breakingOffMs = 20_000

/** All that a run has. */
export interface Play {
  readonly stage: Stage
  readonly ledger: Ledger
  readonly servers: readonly string[]
  readonly containers: Containers | null
  readonly chance: Chance
  readonly undoing: Undoing
  /** Takes note of the daemons that there have been */
  readonly seen: () => unknown
}

/** Everybody at work for so long, and everything that can befall them. */
export async function storm(play: Play, ms: number): Promise<void> {
  const { chance, containers, seen } = play
  const noting = setInterval(seen, 500)
  await atWork(play, ms, (world) => ({
    ...hostsOf(world, chance, 3),
    operator: operator(world, chance.of('operator')),
    misfortune: misfortune({ ...world, chance: chance.of('misfortune'), containers }),
  }))
  clearInterval(noting)
}

/** So many hosts of either kind. */
function hostsOf(world: World, chance: Chance, count: number): Record<string, Promise<void>> {
  const numbers = Array.from({ length: count }, (_, number) => number)
  return Object.fromEntries([
    ...numbers.map((n) => [`host ${n}`, controlHost(world, chance.of(`host ${n}`))] as const),
    ...numbers.map((n) => [`session ${n}`, sessionHost(world, chance.of(`session ${n}`))] as const),
  ])
}

/** Lets them work for so long, and then bring what they are at to its end; so does a run that is broken off. */
async function atWork(
  play: Play,
  ms: number,
  begin: (world: World) => Readonly<Record<string, Promise<void>>>,
): Promise<void> {
  const { account } = play.stage
  const { brokenOff } = play.undoing
  const over = new AbortController()
  const workers = begin({ ...play, signal: AbortSignal.any([over.signal, brokenOff]) })
  const busy = new Set(Object.keys(workers))
  const all = Promise.all(
    Object.entries(workers).map(([name, work]) => work.finally(() => busy.delete(name))),
  )
  play.undoing.defer(() => Promise.race([all, delay(breakingOffMs)]).then(() => undefined))
  await Promise.race([all, delay(ms)])
  over.abort()
  const late = delay(120_000, 'late', { ref: false })
  if ((await Promise.race([all, late])) === 'late')
    account.breaks('answers', `two minutes after the end these still wait: ${[...busy].join(', ')}`)
}

/** Once every fault is over, each server is called again within `ms`. */
export async function expectRecovery({ stage, ledger, servers }: Play, ms = 20_000): Promise<void> {
  if (stage.pid === null) await stage.start()
  await using client = await stage.operator()
  await releaseAll(client)
  for (const server of servers.filter((name) => name !== 'asked'))
    try {
      await eventually(async () => {
        const token = ledger.open(server, 'honest')
        const args = { token, way: 'honest' }
        try {
          await client.call('tools/call', { server, tool: 'effect', arguments: args })
        } catch (error) {
          // One that stopped itself is up and never answers: it is for its operator to end.
          if (error instanceof SallyportError && error.code === 'ERR_CALL_TIMEOUT')
            await client.call('servers/stop', { server })
          throw error
        }
        ledger.close(token, 'done')
        return true
      }, ms)
    } catch (error) {
      stage.account.breaks('recovers', `${server}: ${String((error as Error).cause)}`)
    }
}

/** The same hosts on a daemon that nothing befalls, in rounds: after each it must hold what it held after the first. */
export async function calm(play: Play, ms: number, isPlanted: boolean): Promise<void> {
  const { stage, chance } = play
  await stage.end()
  await stage.start()
  const rounds: Awaited<ReturnType<typeof atRest>>[] = []
  for (let round = 0; round < 4; round++) {
    await atWork(play, ms / 4, (world) => hostsOf(world, chance.of(`calm ${round}`), 2))
    if (isPlanted && round === 3) await plantMore(stage)
    rounds.push(await atRest(stage))
  }
  const [, first, ...others] = rounds
  stage.account.say(
    `at rest: ${rounds.map(({ descriptors, livingMib, residentMib }) => `${descriptors.length} fds, ${livingMib.toFixed(1)} MiB alive, ${residentMib} resident`).join('; ')}`,
  )
  const last = others.at(-1)
  if (first === undefined || last === undefined) return
  if (last.descriptors.length > first.descriptors.length + 3)
    stage.account.breaks(
      'flat',
      `descriptors became ${tally(last.descriptors)}; they were ${tally(first.descriptors)}`,
    )
  // What is resident depends on when V8 last thought of collecting; what is alive then, on us alone.
  if (last.livingMib > first.livingMib + 10)
    stage.account.breaks(
      'flat',
      `${first.livingMib.toFixed(1)} MiB alive became ${last.livingMib.toFixed(1)}`,
    )
}

function tally(names: readonly string[]): string {
  return [...Map.groupBy(names, (name) => name)].map(([name, { length }]) => `${name} ${length}`).join(', ')
}
