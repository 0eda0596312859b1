// Arms by turns, so that whatever else the machine does meets them all alike.
import type { Arm } from './figures.ts'

/** Something that is measured: `once` gives one value, in the figure's unit. */
export interface Measured {
  readonly name: string
  readonly kind: Arm['kind']
  readonly once: () => Promise<number>
}

/** So many rounds over all of them, each round beginning with another one, after one that does not count. */
export async function byTurns(all: readonly Measured[], rounds: number): Promise<readonly Arm[]> {
  const values = new Map(all.map(({ name }) => [name, [] as number[]]))
  for (const { once } of all) await once()
  for (let round = 0; round < rounds; round++)
    for (const index of all.keys()) {
      const it = all[(index + round) % all.length]
      if (it !== undefined) values.get(it.name)?.push(await it.once())
    }
  return all.map(({ name, kind }) => ({ name, kind, values: values.get(name) ?? [] }))
}
