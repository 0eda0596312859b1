// The phases of a run: everybody at work while everything befalls them, the recovery, and the calm after it.
import { setTimeout as delay } from 'node:timers/promises'
import { SallyportError } from '../../src/errors.ts'
import type { Undoing } from '../support/broken-off.ts'
import type { Chance } from './chance.ts'
import type { Coming } from './coming.ts'
import type { Containers } from './containers.ts'
import { controlHost, sessionHost, type World } from './hosts.ts'
import type { Ledger } from './ledger.ts'
import { operator, releaseAll } from './operator.ts'
import { misfortune } from './misfortune.ts'
import { inGoodTime, orLate } from '../support/pace.ts'
import { inVainMs, plantMemory, plantMore } from './plants.ts'
import { atRest, expectLevel, type Rest, restInWords } from './rest.ts'
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
  readonly coming: Coming
}

/** Everybody at work for so long, and everything that can befall them. */
export async function storm(play: Play, ms: number): Promise<void> {
  await befallen(play, ms, false)
  play.stage.account.say('the storm is over')
}

/** The same with one daemon, which nothing befalls that it may end by; at rest once all is over it is back at its level. */
export async function siege(play: Play, ms: number, level: Rest, isPlanted: boolean): Promise<void> {
  const { stage, chance } = play
  await befallen({ ...play, chance: chance.of('siege') }, ms, true)
  stage.account.say('the siege is over')
  await expectRecovery(play)
  if (isPlanted) plantMemory(stage)
  await expectLevel(stage, 'level', level, { isLast: true, ...(isPlanted && { patienceMs: inVainMs }) })
}

async function befallen(play: Play, ms: number, isSpared: boolean): Promise<void> {
  const { chance, containers, coming } = play
  await atWork(play, ms, (world) => ({
    ...hostsOf(world, chance, 3),
    operator: operator(world, chance.of('operator')),
    misfortune: misfortune({ ...world, chance: chance.of('misfortune'), containers, isSpared, coming }),
  }))
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
  // Whoever works on is waited for before anything is undone, also where another one's work failed.
  const ended = Promise.allSettled(Object.values(workers))
  play.undoing.defer(() =>
    Promise.race([ended, delay(breakingOffMs, null, { ref: false })]).then(() => undefined),
  )
  await Promise.race([all, delay(ms)]).finally(() => over.abort())
  const telling = setInterval(() => account.say(`still at work: ${[...busy].join(', ')}`), 5000)
  const isLate = (await orLate(all, 120_000).finally(() => clearInterval(telling))) === 'late'
  if (isLate)
    account.breaks(
      'answers',
      `two minutes after the end, stretched for this machine, these still wait: ${[...busy].join(', ')}`,
    )
}

/** Once every fault is over, each server is called again within `ms`, and uses the credential that it has. */
export async function expectRecovery({ stage, ledger, servers }: Play, ms = 20_000): Promise<void> {
  if (stage.pid === null) await stage.start()
  await using client = await stage.operator()
  await releaseAll(client)
  for (const server of servers.filter((name) => name !== 'asked'))
    try {
      await inGoodTime(async () => {
        const way = server === 'swapped' ? 'uses' : 'honest'
        const token = ledger.open(server, way)
        const args = { token, way }
        try {
          const { type, error_text: words } = await client.call('tools/call', {
            server,
            tool: 'effect',
            arguments: args,
          })
          if (type === 'error') throw new Error(`it says ${words}`)
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

/** The hosts on a fresh daemon that nothing befalls, in rounds; the level, which it may not leave in the third: what it holds at rest after the second. */
export async function calm(play: Play, ms: number, isPlanted: boolean): Promise<Rest> {
  const { stage, chance } = play
  await stage.end()
  await stage.start()
  await expectRecovery(play) // so that all is loaded that a server of any kind needs
  const round = (name: string): Promise<void> =>
    atWork(play, ms / 3, (world) => hostsOf(world, chance.of(name), 2))
  await round('calm 0')
  await round('calm 1')
  const level = await atRest(stage)
  stage.account.say(`at rest: ${restInWords(level)}`)
  await round('calm 2')
  await using _ = isPlanted ? await plantMore(stage) : null
  const planted = { isLast: true, patienceMs: inVainMs }
  const rest = await expectLevel(stage, 'flat', level, isPlanted ? planted : {})
  // What it has filled up since, as its ring of events, is no fault's to give back.
  return isPlanted ? level : rest
}
