// A journal whose records add up to a number, so that it can be seen whether one was left out or counted twice.
import type { Journal } from '../../src/journal/journal.ts'
import { type Foldable, Keeping, type KeepingOptions } from '../../src/daemon/governance/keeping.ts'
import type { Durable } from '../../src/daemon/governance/recorder.ts'

export interface CountFold extends Foldable {
  readonly count: number
  /** Seqs that were folded, not loaded */
  readonly seen: readonly number[]
  /** Appends `n` and folds it once it is durable */
  record(journal: Pick<Journal, 'append'>, n: number): Promise<void>
}

function countFold(): CountFold {
  let count = 0
  const seen: number[] = []
  const fold = ({ type, body, seq }: Pick<Durable, 'type' | 'body' | 'seq'>): void => {
    seen.push(seq)
    if (type !== 'test.count') return
    const { n } = body as { n: number }
    if (n !== count + 1) throw new Error(`counted ${n} after ${count}`)
    count = n
  }
  return {
    get count() {
      return count
    },
    seen,
    fold,
    save: () => count,
    load: (saved: number | null) => {
      count = saved ?? 0
      seen.length = 0
    },
    async record(journal, n) {
      const position = await journal.append({ type: 'test.count', body: JSON.stringify({ n }) })
      fold({ type: 'test.count', body: { n }, ...position })
    },
  }
}

/** Opens a counting journal; every record of the keeping's own goes into it too. */
export function counting(
  directory: string,
  key: Uint8Array,
  more: Partial<KeepingOptions> = {},
): { readonly keeping: Keeping; readonly fold: CountFold; readonly warned: readonly string[] } {
  const fold = countFold()
  const warned: string[] = []
  const keeping: Keeping = Keeping.open({
    directory,
    key,
    daemon: 'd-1',
    durability: 'write',
    segmentBytes: 1 << 20,
    keepDays: 0,
    agesBy: async () => Date.now(),
    folds: { count: fold },
    record: async (type, body) => {
      const position = await keeping.journal.append({ type, body: JSON.stringify(body) })
      fold.fold({ type, body, ...position })
    },
    warn: (what, { message }) => warned.push(`${what}: ${message}`),
    ...more,
  })
  return { keeping, fold, warned }
}
