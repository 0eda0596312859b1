// The first line of a segment: what it hangs on, and what it tells of the end before it.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { errnoOf, isShortage } from '../lib/missing.ts'
import { parseJson } from '../lib/parse-json.ts'
import type { Position } from './record.ts'
import { listSegments, segmentFlags, segmentPath, type Torn } from './segments.ts'

const headerBytes = 65_536

/** What a segment's first record says of what came before. */
export interface Opening {
  readonly begins: Position
  readonly torn: Torn | null
}

/**
 * The position before a segment's first record, as that record says it. One that was left without a first record begins where the
 * next one does; null where there is no such segment, or another thing stands in its first line.
 */
export function beginningOf(directory: string, segment: number): Position | null {
  for (let number = segment; ; number += 1) {
    const line = firstLine(segmentPath(directory, number))
    const begins = beginsIn(line ?? '')
    if (begins !== null) return begins
    if (line === null || line.endsWith('\n')) return null
  }
}

/** What the next segment that has a first record says with it; null where none has. Whoever reads that segment checks the record. */
export function openingBehind(directory: string, segment: number): Opening | null {
  for (const number of listSegments(directory)) {
    if (number <= segment) continue
    const line = firstLine(segmentPath(directory, number)) ?? ''
    const begins = beginsIn(line)
    const body = begins === null ? null : bodyOf(line)
    if (begins !== null && body !== null) return { begins, torn: tornIn(body) }
  }
  return null
}

/** What the body of a segment's first record says of the end before it. */
export const tornIn = (body: unknown): Torn | null =>
  typeof body === 'object' && body !== null && 'torn' in body ? (body.torn as Torn | null) : null

function beginsIn(line: string): Position | null {
  const head = /^\{"seq":(\d+),.*,"prev":"([0-9a-f]{64})","hash":/.exec(line)
  return head === null ? null : { seq: Number(head[1]) - 1, hash: head[2] ?? '' }
}

function bodyOf(line: string): unknown {
  try {
    return (parseJson(line) as { readonly body?: unknown }).body ?? null
  } catch {
    return null
  }
}

/** All of it where it has no end; null where none can be read: whoever reads the whole segment finds out why, and says so. */
function firstLine(path: string): string | null {
  try {
    const fd = openSync(path, segmentFlags)
    try {
      if (!fstatSync(fd).isFile()) return null
      const bytes = Buffer.alloc(headerBytes)
      const text = bytes.toString('latin1', 0, readSync(fd, bytes))
      const end = text.indexOf('\n') + 1
      if (end > 0) return text.slice(0, end)
      return text.length < headerBytes ? text : null
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (errnoOf(error) === null || isShortage(error)) throw error
    return null
  }
}
