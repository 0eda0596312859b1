// A line of 1 MiB between as many processes in C as stand between a host and its server, and what that comes to beside an answer of the SDK's.
import { execFileSync } from 'node:child_process'
import { compile } from './compile.ts'
import { type Arm, median } from './figures.ts'
import type { Measured } from './turns.ts'

const trips = 100

/** By how many stand between. */
export const longNames = [
  'a long line in C',
  'a long line in C, held by one',
  'a long line in C, held by one, passed by one',
] as const

/** The median of many such lines, µs; the first of those between takes all of it before it hands anything on. */
export function longAnswers(folder: string): readonly Measured[] {
  const program = compile('long-answer', folder)
  return longNames.map((name, between) => ({
    name,
    kind: between === 0 ? 'base' : 'bound',
    once: async () => {
      const lines = execFileSync(program, [String(trips), String(between)], { encoding: 'utf8' })
      return median(lines.trim().split('\n').map(Number))
    },
  }))
}

/** What a direct answer, the first of `answers`, would take with what those processes add to a line without them, ms. */
export function besideLong(answers: readonly Arm[], lines: readonly Arm[]): readonly Arm[] {
  const [direct] = answers
  const [none, ...more] = lines
  return more.map(({ name, values }) => ({
    name,
    kind: 'bound',
    values: values.map((us, round) => {
      const added = us - (none?.values[round] ?? Number.NaN)
      return (direct?.values[round] ?? Number.NaN) + added / 1000
    }),
  }))
}
