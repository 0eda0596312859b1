// Whether a rule's `where` holds for some arguments, where it can be told at all.
import { foldKey } from '../lib/key-folding.ts'
import { isPlainPath, matchesPath } from '../lib/glob.ts'

/** `unclear` is a value that is missing, not a string, or spelled so that a server could read it differently. */
export type Holds = 'yes' | 'no' | 'unclear'

/** Compares each pointer's value with its glob. One `no` settles it; otherwise one `unclear` does. */
export function holds(where: Readonly<Record<string, string>>, value: unknown): Holds {
  let answer: Holds = 'yes'
  for (const [pointer, glob] of Object.entries(where)) {
    const found = read(value, parsePointer(pointer))
    const one = isComparable(glob, found) ? matchesPath(glob, found) : null
    if (one === false) return 'no'
    if (one === null) answer = 'unclear'
  }
  return answer
}

const isComparable = (glob: string, value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && isPlainPath(glob, value)

/**
 * The first key on a pointer's way that a lenient reader could take for the pointer's own, or that holds a NUL; null
 * when there is none. What policy read must be what the server reads.
 */
export function ambiguousKey(where: Readonly<Record<string, string>>, value: unknown): string | null {
  for (const pointer of Object.keys(where)) {
    let level = value
    for (const segment of parsePointer(pointer)) {
      if (typeof level !== 'object' || level === null) break
      if (!Array.isArray(level)) {
        const fold = foldKey(segment)
        for (const key of Object.keys(level)) {
          if (key.includes('\0') || (key !== segment && foldKey(key) === fold)) return key
        }
      }
      level = member(level, segment)
    }
  }
  return null
}

/** Splits a JSON pointer (RFC 6901) into its segments. */
function parsePointer(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function read(value: unknown, segments: readonly string[]): unknown {
  let level = value
  for (const segment of segments) {
    if (typeof level !== 'object' || level === null) return undefined
    level = member(level, segment)
  }
  return level
}

/** Own members only: `__proto__` and `constructor` are keys like any other. */
function member(level: object, segment: string): unknown {
  if (Array.isArray(level) && !/^(?:0|[1-9]\d*)$/.test(segment)) return undefined
  return Object.hasOwn(level, segment) ? (level as Record<string, unknown>)[segment] : undefined
}
