// What a benchmark found: one figure with its arms, each arm with a value for every round, and what DESIGN.md asks of it.
export interface Arm {
  readonly name: string
  /** `base` is what the others are held against; `bound` is what this machine can't do better than */
  readonly kind: 'base' | 'bound' | 'ours' | 'peer'
  /** One for each round, in the figure's unit; empty where it could not be measured */
  readonly values: readonly number[]
  /** Why there are none */
  readonly absent?: string
}

/** How a figure is judged: the arm's own median, or the median over rounds of what it adds to the base, or is of it. */
export interface Judged {
  readonly arm: string
  readonly by: 'value' | 'added' | 'percent' | 'percent added'
  readonly target: number
  readonly isAtLeast?: boolean
  /** What no program of this kind can do better than on this machine, by arms of the same run */
  readonly bounds?: readonly Bound[]
}

/** What the same judgement says of something that does next to nothing. */
export interface Bound {
  readonly arm: string
  /** The median over rounds */
  readonly measured: number
  /** Its spread over rounds */
  readonly spread: Spread
}

/** From the least to the most of a few; of many, from the first quartile to the third. */
export type Spread = readonly [number, number]

export interface Figure {
  readonly id: string
  readonly what: string
  readonly unit: string
  readonly arms: readonly Arm[]
  readonly judged: readonly Judged[]
  readonly note?: string
}

/** A target with what was measured for it. */
export interface Verdict extends Judged {
  readonly measured: number
  readonly spread: Spread
  readonly rounds: number
  readonly unit: string
  readonly isHeld: boolean
  readonly outcome: 'held' | 'missed' | 'not measured'
}

/** A part of a run that gave no figures, or not all of them, and why. */
export interface Broken {
  readonly part: string
  readonly reason: string
  /** How many it gave before */
  readonly figures: number
}

/** As a sentence, such as `launch: not measured: status 1`. */
export const brokenAs = ({ part, reason, figures }: Broken): string =>
  `${part}: ${figures === 0 ? 'not measured' : `failed after ${figures} ${figures === 1 ? 'figure' : 'figures'}`}: ${reason}`

/** The value below which the share `q` of them lies, 0 to 1. NaN of none. */
export const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))] ?? Number.NaN

export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** Each target of the figure beside what was measured; an arm without values is measured as NaN, and not held. */
export function verdicts({ unit, arms, judged }: Figure): readonly Verdict[] {
  return judged.map((it) => {
    const { measured, spread, rounds } = judgedBy(it.by, arms, it.arm)
    const isHeld = it.isAtLeast === true ? measured >= it.target : measured <= it.target
    const outcome = Number.isNaN(measured) ? 'not measured' : isHeld ? 'held' : 'missed'
    const judgedIn = it.by.startsWith('percent') ? '%' : unit
    return { ...it, measured, spread, rounds, unit: judgedIn, isHeld, outcome }
  })
}

/** An arm as a target would judge it. */
export function boundBy(by: Judged['by'], arms: readonly Arm[], arm: string): Bound {
  const { measured, spread } = judgedBy(by, arms, arm)
  return { arm, measured, spread }
}

function judgedBy(
  by: Judged['by'],
  arms: readonly Arm[],
  arm: string,
): Omit<Bound, 'arm'> & { rounds: number } {
  const base = arms.find(({ kind }) => kind === 'base')?.values ?? []
  const own = arms.find(({ name }) => name === arm)?.values ?? []
  const values = own.map((value, round) => judgedAs(by, value, base[round] ?? Number.NaN))
  return { measured: median(values), spread: spreadOf(values), rounds: values.length }
}

function judgedAs(by: Judged['by'], value: number, base: number): number {
  if (by === 'value') return value
  if (by === 'added') return value - base
  return by === 'percent' ? (value / base) * 100 : (value / base - 1) * 100
}

export function spreadOf(values: readonly number[]): Spread {
  const [from, to] = values.length > 20 ? [0.25, 0.75] : [0, 1]
  return [quantile(values, from), quantile(values, to)]
}

/** As `12 to 15`. */
export const between = ([from, to]: Spread): string => `${shown(from)} to ${shown(to)}`

/** Three digits that count, thousands apart. */
export const shown = (value: number): string =>
  Number.isNaN(value)
    ? '–'
    : value.toLocaleString('en', { maximumSignificantDigits: Math.abs(value) < 1000 ? 3 : 4 })

/** In words, such as `host.sock: +12.3 ms (+11.9 to +13), target at most 15 ms: held`. */
export function worded(verdict: Verdict): string {
  const { arm, by, target, unit, isAtLeast, outcome } = verdict
  const of = by.startsWith('percent') ? ' of the base' : ''
  const asked = `${isAtLeast === true ? 'at least' : 'at most'} ${shown(target)} ${unit}`
  return `${arm}: ${measuredOf(verdict)}${of}, target ${asked}: ${outcome === 'missed' ? 'MISSED' : outcome}`
}

/** What was measured, with its spread where there was more than one round. */
export function measuredOf({ by, measured, spread, rounds, unit }: Verdict): string {
  if (rounds === 0) return 'no value'
  const median = `${signed(measured, by)} ${unit}`
  return rounds === 1 ? median : `${median} (${signed(spread[0], by)} to ${signed(spread[1], by)})`
}

/** What bounds it on this machine and how far from that it is, such as `one byte pipe in C: +88 µs, 2.9 times that`; one for each. */
export function bounding({ by, measured, unit, bounds = [] }: Verdict): readonly string[] {
  return bounds.map((bound) => {
    const far = bound.measured > 0 && measured > 0 ? `, ${shown(measured / bound.measured)} times that` : ''
    return `${bound.arm}: ${Number.isNaN(bound.measured) ? 'not measured' : `${signed(bound.measured, by)} ${unit}${far}`}`
  })
}

/** What others take, judged alike, such as `srt +356 ms`; one for each. */
export function othersOf({ arms }: Figure, { by, unit }: Verdict): readonly string[] {
  return arms
    .filter(({ kind }) => kind === 'peer')
    .map(({ name, values, absent }) =>
      values.length === 0
        ? `${name}: not measured, ${absent ?? 'no value'}`
        : `${name} ${signed(boundBy(by, arms, name).measured, by)} ${unit}`,
    )
}

/** A value with its sign, where it is a difference. */
export const signed = (value: number, by: Judged['by']): string =>
  `${by.includes('added') && value >= 0 ? '+' : ''}${shown(value)}`

/** The figure as a table for people: medians with their spread, and what each is of the base. */
export function text(figure: Figure): string {
  const base = median(figure.arms.find(({ kind }) => kind === 'base')?.values ?? [])
  const width = Math.max(26, ...figure.arms.map(({ name }) => name.length + 1))
  const rows = figure.arms.map(({ name, values, absent }) => {
    if (values.length === 0) return `  ${name.padEnd(width)}not measured: ${absent ?? 'no value'}`
    const middle = median(values)
    const spread = `(${between(spreadOf(values))})`
    const beside = Number.isNaN(base) ? '' : `${shown((middle / base) * 100)} % of the base`
    return `  ${name.padEnd(width)}${shown(middle).padStart(9)} ${figure.unit.padEnd(8)} ${spread.padEnd(24)} ${beside}`.trimEnd()
  })
  const judged = verdicts(figure).flatMap((it) => [
    `  → ${worded(it)}`,
    ...bounding(it).map((bound) => `      bound here by ${bound}`),
  ])
  const note = figure.note === undefined ? [] : [`  ${figure.note}`]
  return [figure.what, ...rows, ...judged, ...note].join('\n')
}

/** Prints the figures, or hands them to the process that collects them. */
export function publish(figures: readonly Figure[]): void {
  // A reader that has gone is no reason to leave a daemon behind.
  process.stdout.on('error', () => undefined)
  if (process.send !== undefined) process.send({ figures })
  else for (const figure of figures) process.stdout.write(`${text(figure)}\n\n`)
}
