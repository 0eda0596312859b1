// Work in lanes: so many pieces at once, begun in their order.

/** Does each piece of work. Where one fails no further one is begun, and what it threw is thrown once nothing goes on any more. */
export const inLanes = async <T extends object | string>(
  pieces: Iterable<T>,
  lanes: number,
  work: (piece: T) => Promise<unknown>,
): Promise<void> => {
  const waiting = [...pieces]
  const lane = async (): Promise<void> => {
    try {
      for (let piece = waiting.shift(); piece !== undefined; piece = waiting.shift()) await work(piece)
    } finally {
      waiting.length = 0
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: lanes }, lane))
  const failed = ends.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}
