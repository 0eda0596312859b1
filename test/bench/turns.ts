// Arms by turns, so that whatever else the machine does meets them all alike.
import type { Arm } from './figures.ts'

/** Something that is measured: `once` gives one value, in the figure's unit. */
export interface Measured {
  readonly name: string
  readonly kind: Arm['kind']
  readonly once: () => Promise<number>
}

/** So many rounds over all of them, after one that does not count. */
export async function byTurns(all: readonly Measured[], rounds: number): Promise<readonly Arm[]> {
  const values = new Map(all.map(({ name }) => [name, [] as number[]]))
  for (const { once } of all) await once()
  for (let round = 0; round < rounds; round++)
    for (const { name, once } of turnOf(all, round)) values.get(name)?.push(await once())
  return all.map(({ name, kind }) => ({ name, kind, values: values.get(name) ?? [] }))
}

/** All of them in the order of this round: each round begins with the one after that which began the last. */
export function turnOf<T>(all: readonly T[], round: number): readonly T[] {
  const first = round % all.length
  return [...all.slice(first), ...all.slice(0, first)]
}
