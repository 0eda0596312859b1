// Whether a rule's conditions hold for some arguments, where it can be told at all.
import type { Effort } from '../lib/glob.ts'
import { foldKey, longestOf } from '../lib/key-folding.ts'
import { matchesPlainly } from '../lib/path-glob.ts'
import { matchesUri } from '../lib/uri-glob.ts'
import type { CompiledRule, Condition } from './rule.ts'

/**
 * `unclear` is a value that is missing, not a string, or spelled so that a server could read it differently; of the elements of a
 * list also where they are told different things, and where there are none.
 */
export type Holds = 'yes' | 'no' | 'unclear'

/** What stands in a pointer for every element of a list; over an object it is a key like any other */
const every = '*'

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
    this.effort.left -= level.size
    this.#levels.set(object, level)
    return level
  }
}

const foldsOf = ({ conditions }: CompiledRule): readonly string[] =>
  conditions.flatMap(({ segments }) => segments.map(({ fold }) => fold))

interface Level {
  /** How many keys there are */
  readonly size: number
  /** A key that holds a NUL, or is `__proto__` */
  readonly unsound: string | null
  /** Keys that are not their own fold, by that */
  readonly byFold: ReadonlyMap<string, readonly string[]>
}

/** Compares each pointer's value with its glob. One `no` settles it; otherwise one `unclear` does. */
export function holds(conditions: readonly Condition[], value: unknown, reading: Reading): Holds {
  let answer: Holds = 'yes'
  for (const condition of conditions) {
    const one = compare(condition, value, reading)
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
  for (const condition of conditions) {
    const key = ambiguousOn(condition, value, reading)
    if (key !== null) return key
  }
  return null
}

/** Of a list so long that looking at it takes more steps than are left nothing is told, so nothing is allowed by what it holds. */
function ambiguousOn(condition: Condition, value: unknown, reading: Reading, from = 0): string | null {
  const { segments } = condition
  let [level, at] = [value, 0]
  for (const segment of segments) {
    if (++at <= from) continue
    if (typeof level !== 'object' || level === null) return null
    if (Array.isArray(level) && segment.key === every) {
      for (const one of level) {
        if (--reading.effort.left < 0) return null
        const key = ambiguousOn(condition, one, reading, at)
        if (key !== null) return key
      }
      return null
    }
    const key = Array.isArray(level) ? null : confusableWith(segment, level, reading)
    if (key !== null) return key
    level = member(level, segment.key)
  }
  return null
}

/** Whether what the pointer leads to matches: all of it, or none of it; null where it can't be told. */
function compare(condition: Condition, value: unknown, reading: Reading, from = 0): boolean | null {
  const { segments, glob } = condition
  let [level, at] = [value, 0]
  for (const { key } of segments) {
    if (++at <= from) continue
    if (typeof level !== 'object' || level === null) return null
    if (key === every) {
      if (Array.isArray(level)) return compareAll(condition, level, reading, at)
      if (reading.level(level).size > 1) return null // who takes an object for a list finds the others, too
    }
    level = member(level, key)
  }
  return isText(level) ? matches(glob, level, reading.effort) : null
}

function compareAll(
  condition: Condition,
  list: readonly unknown[],
  reading: Reading,
  from: number,
): boolean | null {
  let verdict: boolean | null = null
  for (const one of list) {
    if (--reading.effort.left < 0) return null
    const its = compare(condition, one, reading, from)
    if (its === null || (verdict !== null && its !== verdict)) return null
    verdict = its
  }
  return verdict
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
  const keys = Object.keys(object)
  for (const key of keys) {
    const fold = foldKey(key, longest)
    if (key === '__proto__') unsound ??= key // readers that copy objects find its members in theirs
    if (fold === key) continue
    if (key.includes('\0')) unsound ??= key
    const same = byFold.get(fold)
    if (same === undefined) byFold.set(fold, [key])
    else same.push(key)
  }
  return { size: keys.length, unsound, byFold }
}

/** Own members only: `__proto__` and `constructor` are keys like any other. */
function member(level: object, key: string): unknown {
  if (Array.isArray(level) && !/^(?:0|[1-9]\d*)$/.test(key)) return undefined
  return Object.hasOwn(level, key) ? (level as Record<string, unknown>)[key] : undefined
}
