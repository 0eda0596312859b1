// Arms by turns, so that whatever else the machine does meets them all alike.
import type { Arm } from './figures.ts'

/** Something that is measured: `once` gives one value, in the figure's unit. */
export interface Measured {
  readonly name: string
  readonly kind: Arm['kind']
  readonly once: () => Promise<number>
}

/** So many rounds over all of them, after one that does not count. A peer that fails is absent from then on; any other ends the run. */
export async function byTurns(all: readonly Measured[], rounds: number): Promise<readonly Arm[]> {
  const values = new Map(all.map(({ name }) => [name, [] as number[]]))
  const failed = new Map<string, string>()
  const measure = async ({ name, kind, once }: Measured): Promise<void> => {
    if (failed.has(name)) return
    try {
      values.get(name)?.push(await once())
    } catch (error) {
      if (kind !== 'peer') throw error
      failed.set(name, `it failed: ${(error as Error).message}`)
    }
  }
  for (const it of all) await measure(it)
  for (let round = 0; round < rounds; round++) for (const it of turnOf(all, round)) await measure(it)
  return all.map(({ name, kind }): Arm => {
    const absent = failed.get(name)
    return absent === undefined
      ? { name, kind, values: values.get(name)?.slice(1) ?? [] }
      : { name, kind, values: [], absent }
  })
}

/** All of them in the order of this round: each round begins with the one after that which began the last. */
export function turnOf<T>(all: readonly T[], round: number): readonly T[] {
  const first = round % all.length
  return [...all.slice(first), ...all.slice(0, first)]
}
