// Which fault comes next, and what is said of those that came, and of those that did not.
import { setTimeout as delay } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import type { Coming } from './coming.ts'
import { faults } from './faults.ts'
import { Missed, type Scene } from './scene.ts'

/**
 * Lets one fault after the other befall the daemon, with pauses between, until that is over: of those that the run is to
 * have, or of those among them alone that a daemon has to survive. Says which of them there was no time for, and which
 * befell nobody each time.
 */
export async function misfortune(
  scene: Scene & { readonly signal: AbortSignal; readonly isSpared: boolean; readonly coming: Coming },
): Promise<void> {
  const { stage, chance, signal: over, containers, isSpared, coming } = scene
  const weights = Object.entries(faults)
    .filter(
      ([name, { isFatal }]) => (containers !== null || !name.includes('container')) && !(isSpared && isFatal),
    )
    .filter(([name]) => coming.chosen.includes(name))
    .map(([name, { weight }]) => [weight, name] as const)
  if (weights.length === 0) return stage.account.say('there is no such fault for this part')
  const names = weights.map(([, name]) => name)
  const [tried, taken] = [new Set<string>(), new Set<string>()]
  for (const name of course(chance, weights, coming)) {
    const pauseMs = chance.between(50, 900)
    await delay(coming.hasCome(name) ? pauseMs : pauseMs / 3)
    if (over.aborted) break
    const what = await faults[name]?.befall(scene)
    const hasTaken = !(what instanceof Missed)
    stage.account.count(hasTaken ? 'faults' : 'faults that befell nobody', name)
    stage.account.say(`${name}: ${hasTaken ? what : `befell nobody: ${what.why}`}`)
    coming.note(name, hasTaken)
    tried.add(name)
    if (hasTaken) taken.add(name)
  }
  const tell = (words: string, of: readonly string[]): void =>
    of.length > 0 ? stage.account.say(`${words}: ${of.join('; ')}`) : undefined
  tell(
    'no time for these',
    names.filter((name) => !tried.has(name)),
  )
  tell(
    'these befell nobody',
    [...tried].filter((name) => !taken.has(name)),
  )
  stage.setClock(0)
}

/** Every fault that has not come in this run once, in any order, since a short one is to have each of them, and from then on as often as they weigh. */
function* course(
  chance: Chance,
  weights: readonly (readonly [number, string])[],
  coming: Coming,
): Generator<string> {
  const first = weights.filter(([, name]) => !coming.hasCome(name))
  while (first.length > 0) yield* first.splice(chance.between(0, first.length - 1), 1).map(([, name]) => name)
  for (;;) yield chance.weighed(weights)
}
