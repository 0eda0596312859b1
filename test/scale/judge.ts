// Whether a daemon held what it held: what may not grow while nothing but time and calls goes by, and what may grow with servers.
import type { Outcome, Standing } from './run.ts'

export interface Verdict {
  readonly what: string
  readonly measured: string
  readonly bound: string
  readonly outcome: 'held' | 'broken' | 'not measured'
}

/** Code that is compiled later, tables that find their size: what a steady load may add to what lives, whatever its length, MiB */
const settlingMib = 1
/** What it may add for each call beyond that: far less than one text of a call, bytes */
const callBytes = 16
/** Descriptors that may come and go between two looks: a segment of the journal, a file that is read */
const passing = 2
/** How much more each further server may take than each of the first half did */
const linear = 1.5

/** Each bound with what was measured for it. */
export function judge({ wanted, steps, standing, steady }: Outcome): readonly Verdict[] {
  const [first, ...rest] = standing.slice(1)
  const last = rest.at(-1)
  if (first === undefined || last === undefined) throw new Error('no steady load to judge')
  const errors = steady.errors + steps.reduce((sum, { latency }) => sum + latency.errors, 0)
  // Without a call there was no load, and what is counted over it is none.
  const overCalls = (count: number): number => (steady.calls === 0 ? Number.NaN : count)
  const livingSlope = slope(standing.slice(1), ({ livingMib }) => livingMib)
  const grown = livingSlope * (last.at - first.at)
  const mayGrow = settlingMib + (steady.calls * callBytes) / 1024 ** 2
  const descriptors = spread(standing, (it) => it.descriptors)
  const processes = spread(standing, (it) => it.processes)
  const up = standing.map(({ servers }) => servers)
  return [
    atMost('calls without their answer', overCalls(errors), 0, ''),
    atMost('servers that were not up at a look', Math.max(...up.map((it) => wanted.servers - it)), 0, ''),
    atMost('what lives in the daemon, grown over the steady load', overCalls(grown), mayGrow, ' MiB'),
    atMost('descriptors of the daemon, most less fewest', descriptors, passing, ''),
    atMost('processes beside the servers, most less fewest', processes, 0, ''),
    ...growth('descriptors', steps, ({ standing: it }) => it.descriptors, ''),
    ...growth('processes', steps, ({ standing: it }) => it.processes, ''),
    ...growth('KiB that live', steps, ({ standing: it }) => it.livingMib * 1024, ' KiB'),
    ...growth('KiB of PSS', steps, ({ standing: it }) => it.pssMib * 1024, ' KiB'),
  ]
}

/** What a further server adds in the last step, beside what one added until then: told only where there are steps enough. */
function growth(
  what: string,
  steps: Outcome['steps'],
  of: (step: Outcome['steps'][number]) => number,
  unit: string,
): readonly Verdict[] {
  const [before, last] = steps.slice(-2)
  const start = steps.find(({ servers }) => servers >= 10)
  if (before === undefined || last === undefined || start === undefined || start === before || start === last)
    return []
  const each = (from: typeof start, to: typeof start): number =>
    (of(to) - of(from)) / (to.servers - from.servers)
  const until = each(start, before)
  return [
    atMost(
      `${what} for each further server, the last ${last.servers - before.servers}`,
      each(before, last),
      until * linear,
      unit,
    ),
  ]
}

function atMost(what: string, measured: number, bound: number, unit: string): Verdict {
  const worded = (value: number): string => `${Number(value.toFixed(2))}${unit}`
  const asked = { what, bound: `at most ${worded(bound)}` }
  if (Number.isNaN(measured)) return { ...asked, measured: 'not measured', outcome: 'not measured' }
  return { ...asked, measured: worded(measured), outcome: measured <= bound ? 'held' : 'broken' }
}

/** By least squares, for each second. */
function slope(them: readonly Standing[], of: (it: Standing) => number): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, it) => sum + it, 0) / values.length
  const [x, y] = [mean(them.map(({ at }) => at)), mean(them.map(of))]
  const across = them.reduce((sum, it) => sum + (it.at - x) * (of(it) - y), 0)
  return across / them.reduce((sum, it) => sum + (it.at - x) ** 2, 0)
}

function spread(them: readonly Standing[], of: (it: Standing) => number): number {
  const values = them.map(of)
  return Math.max(...values) - Math.min(...values)
}
