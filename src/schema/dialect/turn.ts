// One judgement of one value: where it stands, which way led there, and what has been looked at.
import type { Resource } from './resources.ts'
import { Seen } from './seen.ts'

/** The resources that led to a schema, the last one first: where a dynamic reference looks. */
export interface Scope {
  readonly resource: Resource
  readonly outer: Scope | null
}

/** Where a judgement stands. */
export interface Turn {
  /** What leads to the value, for who reads the verdict */
  readonly at: string
  readonly scope: Scope
  /** What was looked at of the value; null where the schema never asks for that */
  readonly seen: Seen | null
}

/** Null, or where and why a value is not what a schema says. */
export type Check = (value: unknown, turn: Turn) => string | null

/** Judges the same value by a schema beside; what that has looked at counts where the value fits. */
export const beside = (check: Check, value: unknown, turn: Turn): string | null => {
  if (turn.seen === null) return check(value, turn)
  const seen = new Seen()
  const problem = check(value, { ...turn, seen })
  if (problem === null) turn.seen.take(seen)
  return problem
}
