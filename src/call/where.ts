// Whether a rule's conditions hold for some arguments, where it can be told at all.
import { isPlainPath } from '../lib/glob.ts'
import { foldKey } from '../lib/key-folding.ts'
import { matchesPlainly } from '../lib/path-glob.ts'
import { matchesUri } from '../lib/uri-glob.ts'
import type { Condition } from './rule.ts'

/** `unclear` is a value that is missing, not a string, or spelled so that a server could read it differently. */
export type Holds = 'yes' | 'no' | 'unclear'

/** Compares each pointer's value with its glob. One `no` settles it; otherwise one `unclear` does. */
export function holds(conditions: readonly Condition[], value: unknown): Holds {
  let answer: Holds = 'yes'
  for (const { segments, glob } of conditions) {
    const found = read(value, segments)
    const one = isText(found) ? matches(glob, found) : null
    if (one === false) return 'no'
    if (one === null) answer = 'unclear'
  }
  return answer
}

/**
 * The first key on a pointer's way that a lenient reader could take for the pointer's own, or that holds a NUL; null
 * when there is none. What policy read must be what the server reads.
 */
export function ambiguousKey(conditions: readonly Condition[], value: unknown): string | null {
  for (const { segments } of conditions) {
    let level = value
    for (const segment of segments) {
      if (typeof level !== 'object' || level === null) break
      const key = Array.isArray(level) ? null : confusableWith(segment, Object.keys(level))
      if (key !== null) return key
      level = member(level, segment.key)
    }
  }
  return null
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.isWellFormed()

function matches(glob: string, value: string): boolean | null {
  if (!glob.includes('://')) return matchesPlainly(glob, value)
  return isPlainPath(glob, value) ? matchesUri(glob, value) : null
}

const confusableWith = (
  { key, fold }: Condition['segments'][number],
  keys: readonly string[],
): string | null =>
  keys.find((other) => other.includes('\0') || (other !== key && foldKey(other) === fold)) ?? null

function read(value: unknown, segments: Condition['segments']): unknown {
  let level = value
  for (const { key } of segments) {
    if (typeof level !== 'object' || level === null) return undefined
    level = member(level, key)
  }
  return level
}

/** Own members only: `__proto__` and `constructor` are keys like any other. */
function member(level: object, key: string): unknown {
  if (Array.isArray(level) && !/^(?:0|[1-9]\d*)$/.test(key)) return undefined
  return Object.hasOwn(level, key) ? (level as Record<string, unknown>)[key] : undefined
}
