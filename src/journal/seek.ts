// Where in a segment a record lies: its lines stand in the order of their numbers, so that halving finds it.
import type { FileHandle } from 'node:fs/promises'

/** Two places in a segment, bytes. */
export interface Between {
  /** Where a record of that number or a smaller one begins, or 0 */
  readonly start: number
  /** Where a record of a greater number begins, or the segment's end */
  readonly end: number
}

const probeBytes = 16_384
const headBytes = 32

/**
 * Places before and behind the end of the record `seq`, as near to it as `nearBytes` and the lines there allow. It is looked for
 * near the end of the segment first: whoever follows is there.
 */
export async function seek(file: FileHandle, seq: number, nearBytes: number): Promise<Between> {
  let start = 0
  let { size: end } = await file.stat()
  if (((await numberAt(file, 0)) ?? 0) > seq) return { start, end: 0 }
  for (let [limit, step] = [end, nearBytes]; limit - start > nearBytes; step *= 4) {
    const middle = limit - Math.min(step, Math.ceil((limit - start) / 2))
    const line = await lineBehind(file, middle, limit)
    const number = line === null ? null : await numberAt(file, line)
    if (line !== null && number !== null && number <= seq) start = line
    else {
      limit = middle
      if (line !== null && number !== null) end = line
    }
  }
  return { start, end }
}

/** Where the first line begins behind `from`, if before `limit`. */
async function lineBehind(file: FileHandle, from: number, limit: number): Promise<number | null> {
  const buffer = Buffer.alloc(probeBytes)
  for (let position = from; position < limit;) {
    const { bytesRead } = await file.read(buffer, 0, probeBytes, position)
    const at = buffer.subarray(0, bytesRead).indexOf(10)
    if (at >= 0) return position + at + 1 < limit ? position + at + 1 : null
    if (bytesRead === 0) return null
    position += bytesRead
  }
  return null
}

/** Number of the record that begins there; null where none does. */
export async function numberAt(file: FileHandle, position: number): Promise<number | null> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, position)
  const head = /^\{"seq":(\d+),/.exec(buffer.toString('latin1', 0, bytesRead))
  return head === null ? null : Number(head[1])
}
