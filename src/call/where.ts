// Whether a rule's conditions hold for some arguments, where it can be told at all.
import type { Effort } from '../lib/glob.ts'
import { foldKey, longestOf } from '../lib/key-folding.ts'
import { matchesPlainly } from '../lib/path-glob.ts'
import { matchesUri } from '../lib/uri-glob.ts'
import type { CompiledRule, Condition } from './rule.ts'

/** `unclear` is a value that is missing, not a string, or spelled so that a server could read it differently. */
export type Holds = 'yes' | 'no' | 'unclear'

/** Steps of comparing, of a few dozen nanoseconds each: others choose the values, and everybody waits */
export const mostSteps = { ofDecision: 1_048_576, ofList: 4_194_304 } as const

/** What one decision finds out of its arguments: once, however many rules look at the same. */
export class Reading {
  readonly effort: Effort
  readonly #rules: readonly CompiledRule[]
  readonly #levels = new Map<object, Level>()
  #longest: number | null = null

  /** Of the keys that these rules look for. */
  constructor(rules: readonly CompiledRule[], steps: number = mostSteps.ofDecision) {
    this.#rules = rules
    this.effort = { left: steps, readings: new Map() }
  }

  /** The keys of an object of the arguments. */
  level(object: object): Level {
    const known = this.#levels.get(object)
    if (known !== undefined) return known
    this.#longest ??= longestOf(this.#rules.flatMap(foldsOf))
    const level = levelOf(object, this.#longest)
    this.#levels.set(object, level)
    return level
  }
}

const foldsOf = ({ conditions }: CompiledRule): readonly string[] =>
  conditions.flatMap(({ segments }) => segments.map(({ fold }) => fold))

interface Level {
  /** A key that holds a NUL, or is `__proto__` */
  readonly unsound: string | null
  /** Keys that are not their own fold, by that */
  readonly byFold: ReadonlyMap<string, readonly string[]>
}

/** Compares each pointer's value with its glob. One `no` settles it; otherwise one `unclear` does. */
export function holds(conditions: readonly Condition[], value: unknown, { effort }: Reading): Holds {
  let answer: Holds = 'yes'
  for (const { segments, glob } of conditions) {
    const found = read(value, segments)
    const one = isText(found) ? matches(glob, found, effort) : null
    if (one === false) return 'no'
    if (one === null) answer = 'unclear'
  }
  return answer
}

/**
 * The first key on a pointer's way that a lenient reader could take for the pointer's own, that holds a NUL, or is `__proto__`; null
 * when there is none. What policy read must be what the server reads.
 */
export function ambiguousKey(
  conditions: readonly Condition[],
  value: unknown,
  reading: Reading,
): string | null {
  for (const { segments } of conditions) {
    let level = value
    for (const segment of segments) {
      if (typeof level !== 'object' || level === null) break
      const key = Array.isArray(level) ? null : confusableWith(segment, level, reading)
      if (key !== null) return key
      level = member(level, segment.key)
    }
  }
  return null
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.isWellFormed()

/** Looking at a value takes time by itself, and by its length, whatever the glob is. */
function matches(glob: string, value: string, effort: Effort): boolean | null {
  const isUri = glob.includes('://')
  effort.left -= 8 + value.length / 8
  if (effort.left < 0) return null
  return isUri ? matchesUri(glob, value, effort) : matchesPlainly(glob, value, effort)
}

function confusableWith(
  { key, fold }: Condition['segments'][number],
  object: object,
  reading: Reading,
): string | null {
  const { unsound, byFold } = reading.level(object)
  if (unsound !== null) return unsound
  if (fold !== key && Object.hasOwn(object, fold)) return fold
  return byFold.get(fold)?.find((other) => other !== key) ?? null
}

function levelOf(object: object, longest: number): Level {
  const byFold = new Map<string, string[]>()
  let unsound: string | null = null
  for (const key of Object.keys(object)) {
    const fold = foldKey(key, longest)
    if (key === '__proto__') unsound ??= key // readers that copy objects find its members in theirs
    if (fold === key) continue
    if (key.includes('\0')) unsound ??= key
    const same = byFold.get(fold)
    if (same === undefined) byFold.set(fold, [key])
    else same.push(key)
  }
  return { unsound, byFold }
}

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
