// Looks for findings in a target, guided: an input that reaches a block which none reached before becomes a parent of others.
import type { Chance } from '../chaos/chance.ts'
import { Coverage } from './coverage.ts'
import { mutate } from './mutate.ts'
import { bytesOf, type Target, tryInput } from './target.ts'

/** Asking V8 takes longer than running an input: it is asked once for so many. */
const batch = 64
const longestBytes = 4096

/** What became of a search. */
export interface Search {
  readonly runs: number
  readonly blocks: number
  /** Inputs that together reach all that was reached */
  readonly corpus: readonly Buffer[]
  readonly finding: { readonly input: Buffer; readonly error: unknown } | null
}

/** Searches for `ms`, or until there is a finding, which it makes as small as it can. */
export async function search(
  target: Target,
  given: readonly Buffer[],
  ms: number,
  chance: Chance,
): Promise<Search> {
  const coverage = new Coverage()
  const corpus: Buffer[] = []
  let runs = 0
  const found = (input: Buffer, error: unknown): Promise<Search> =>
    shrink(target, input, Math.min(ms, shrinkMs)).then((small) => ({
      runs,
      blocks: coverage.size,
      corpus,
      finding: { input: small, error },
    }))
  // Of those that reached something new together: by halves, since few of them did, and each question has its price.
  const keep = async (inputs: readonly Buffer[]): Promise<void> => {
    const middle = Math.ceil(inputs.length / 2)
    for (const half of [inputs.slice(0, middle), inputs.slice(middle)]) {
      for (const input of half) await tryInput(target, input)
      if (!coverage.hasNew(half.length > 1)) continue
      if (half.length > 1) await keep(half)
      else corpus.push(...half)
    }
  }

  // What is loaded and compiled at the first input of all belongs to none of them.
  const seeds = [...given, ...target.seeds.map(bytesOf)].sort((a, b) => a.length - b.length)
  for (const seed of [Buffer.alloc(0), ...seeds]) {
    runs++
    const error = await tryInput(target, seed)
    if (error !== null) return await found(seed, error)
    if (coverage.hasNew()) corpus.push(seed)
  }
  for (const end = performance.now() + ms; performance.now() < end;) {
    const made = Array.from({ length: batch }, () =>
      mutate(chance.pick(corpus), corpus, target.words, chance, longestBytes),
    )
    for (const input of made) {
      runs++
      const error = await tryInput(target, input)
      if (error !== null) return await found(input, error)
    }
    if (coverage.hasNew(true)) await keep(made)
  }
  return { runs, blocks: coverage.size, corpus, finding: null }
}

/** How long a finding is made smaller at most, ms, and never longer than was searched: one that takes its time is small enough as it is */
const shrinkMs = 30_000

/** Leaves out of a finding whatever it does not need. */
async function shrink(target: Target, input: Buffer, ms: number): Promise<Buffer> {
  let small = input
  const end = performance.now() + ms
  for (let size = Math.ceil(small.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let at = 0; at < small.length && performance.now() < end;) {
      const less = Buffer.concat([small.subarray(0, at), small.subarray(at + size)])
      if ((await tryInput(target, less)) === null) at += size
      else small = less
    }
  return small
}
