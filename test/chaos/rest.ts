// A daemon at rest: what it holds while nobody calls, and what it may not hold then.
import { rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../src/client/client.ts'
import { cgroupsOf } from '../support/leaks.ts'
import { livingAt } from '../support/living.ts'
import { type Holding, holdingOf } from './census.ts'
import { inGoodTime } from '../support/pace.ts'
import { expectNoCredentials } from './secrets.ts'
import { socketsOf } from './sockets.ts'
import type { Stage } from './stage.ts'

/** How much more may live in it than at its level, MiB */
const moreMib = 10
/** From one reading of how much lives in it to the next, ms */
const readingMs = 500

/** What a daemon at rest holds. */
export interface Rest extends Holding {
  readonly livingMib: number
}

/** How much lives in a daemon is the least of so many readings, unless one is as little as `enoughMib` already. */
interface Readings {
  readonly most: number
  readonly enoughMib: number
}
const usual: Readings = { most: 6, enoughMib: 0 }

/** Looks for what outlived its call, stops every server, and waits until the daemon has nothing but its helpers. */
export async function atRest(stage: Stage, readings = usual): Promise<Rest> {
  await using client = await stage.operator()
  await expectNoCredentials(stage.account, stage.api, client.hello.pid)
  for (const { name } of (await client.call('servers/list', {})).servers)
    await client.call('servers/stop', { server: name }).catch(() => undefined)
  const { pid } = client.hello
  try {
    await inGoodTime(() => holdingOf(pid).others.length === 0, 15_000)
  } catch {
    stage.account.breaks('processes', `with every server stopped: ${holdingOf(pid).others.join('; ')}`)
  }
  const groups = (): readonly string[] =>
    cgroupsOf(client.hello.daemon).filter((path) => /\/i-[^/]+$/.test(path))
  try {
    await inGoodTime(() => groups().length === 0, 10_000)
  } catch {
    stage.account.breaks('cgroups', `with every server stopped: ${groups().join('; ')}`)
  }
  await expectNoLeases(stage, client)
  return { ...holdingOf(pid), livingMib: await livingMib(stage, readings) }
}

/** Breaks `leases` where a permit or a question is there; to be called while no call is in flight. */
export async function expectNoLeases({ account }: Stage, client: Client): Promise<void> {
  const { permits } = await client.call('permits/list', {})
  const { pending } = await client.call('approvals/list', {})
  if (permits.length + pending.length > 0)
    account.breaks('leases', `${permits.length} permits, ${pending.length} questions with nobody waiting`)
}

/**
 * Waits until a daemon at rest holds no more than its level, and returns what it holds; one that goes on holding more breaks the
 * invariant. Where it `isLast`, and nobody takes what it holds for a level, it is as little as it need be.
 */
export async function expectLevel(
  stage: Stage,
  invariant: 'flat' | 'level',
  level: Rest,
  { patienceMs = 20_000, isLast = false }: { readonly patienceMs?: number; readonly isLast?: boolean } = {},
): Promise<Rest> {
  const most = Math.min(usual.most, Math.ceil(patienceMs / readingMs))
  const readings = { most, enoughMib: isLast ? level.livingMib + moreMib : 0 }
  let rest = await atRest(stage, readings)
  const isLevel = async (): Promise<boolean> => {
    if (excessOf(rest, level).length > 0) rest = await atRest(stage, readings)
    return excessOf(rest, level).length === 0
  }
  await inGoodTime(isLevel, patienceMs).catch(() => undefined)
  stage.account.say(`at rest again: ${restInWords(rest)}`)
  for (const excess of excessOf(rest, level)) stage.account.breaks(invariant, excess)
  if (excessOf(rest, level).length > 0) explain(stage)
  return rest
}

/** Says what the daemon holds, so that whoever reads of too much finds out whose it is. */
function explain(stage: Stage): void {
  stage.account.say(`its sockets: ${socketsOf(stage.pid ?? 0).join('; ')}`)
  stage.account.say(`its handles: ${livingAt(stage.living).handles.join('; ')}`)
}

/** What is resident depends on when V8 last thought of collecting; what is alive then, on us alone. */
function excessOf(rest: Rest, level: Rest): readonly string[] {
  return [
    ...(rest.descriptors.length > level.descriptors.length + 3
      ? [`descriptors: ${tally(rest.descriptors)}, where ${tally(level.descriptors)} is the level`]
      : []),
    ...(rest.livingMib > level.livingMib + moreMib
      ? [`${rest.livingMib.toFixed(1)} MiB alive, where ${level.livingMib.toFixed(1)} is the level`]
      : []),
  ]
}

export const restInWords = ({ descriptors, livingMib, residentMib }: Rest): string =>
  `${descriptors.length} fds, ${livingMib.toFixed(1)} MiB alive, ${residentMib} resident`

function tally(names: readonly string[]): string {
  return [...Map.groupBy(names, (name) => name)].map(([name, { length }]) => `${name} ${length}`).join(', ')
}

/**
 * What lives in the daemon once all garbage is collected, MiB: the least of some readings, since V8 frees the memory of
 * buffers beside the collection that found them dead, and what was cut off is let go of a moment later.
 */
async function livingMib(stage: Stage, { most, enoughMib }: Readings): Promise<number> {
  let least = await reading(stage)
  for (let left = most - 1; left > 0 && least > enoughMib; left--) {
    await delay(readingMs)
    least = Math.min(least, await reading(stage))
  }
  return least
}

async function reading({ living, pid }: Stage): Promise<number> {
  rmSync(living, { force: true })
  if (pid !== null) process.kill(pid, 'SIGUSR2')
  return (await inGoodTime(() => livingAt(living), 10_000)).bytes / 1024 ** 2
}
