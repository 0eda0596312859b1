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
  readonly measured: number
}

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
  readonly unit: string
  readonly isHeld: boolean
}

/** The value below which the share `q` of them lies, 0 to 1. NaN of none. */
export const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))] ?? Number.NaN

export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** Each target of the figure beside what was measured; an arm without values is measured as NaN, and not held. */
export function verdicts({ unit, arms, judged }: Figure): readonly Verdict[] {
  return judged.map((it) => {
    const { measured } = boundBy(it.by, arms, it.arm)
    const isHeld = it.isAtLeast === true ? measured >= it.target : measured <= it.target
    return { ...it, measured, unit: it.by.startsWith('percent') ? '%' : unit, isHeld }
  })
}

/** An arm as a target would judge it. */
export function boundBy(by: Judged['by'], arms: readonly Arm[], arm: string): Bound {
  const base = arms.find(({ kind }) => kind === 'base')?.values ?? []
  const own = arms.find(({ name }) => name === arm)?.values ?? []
  return { arm, measured: median(own.map((value, round) => judgedAs(by, value, base[round] ?? Number.NaN))) }
}

function judgedAs(by: Judged['by'], value: number, base: number): number {
  if (by === 'value') return value
  if (by === 'added') return value - base
  return by === 'percent' ? (value / base) * 100 : (value / base - 1) * 100
}

/** From the least to the most of a few; of many, from the first quartile to the third. */
export function spreadOf(values: readonly number[]): string {
  const [from, to] = values.length > 20 ? [0.25, 0.75] : [0, 1]
  return `${shown(quantile(values, from))} to ${shown(quantile(values, to))}`
}

/** Three digits that count, thousands apart. */
export const shown = (value: number): string =>
  Number.isNaN(value)
    ? '–'
    : value.toLocaleString('en', { maximumSignificantDigits: Math.abs(value) < 1000 ? 3 : 4 })

/** In words, such as `host.sock: +12.3 ms, target at most 15 ms: held`. */
export function worded(verdict: Verdict): string {
  const { arm, by, measured, target, unit, isAtLeast, isHeld } = verdict
  const of = by === 'percent' || by === 'percent added' ? ' of the base' : ''
  const asked = `${isAtLeast === true ? 'at least' : 'at most'} ${shown(target)} ${unit}`
  return `${arm}: ${signed(measured, by)} ${unit}${of}, target ${asked}: ${isHeld ? 'held' : 'MISSED'}`
}

/** What bounds it on this machine and how far from that it is, such as `one byte pipe in C: +88 µs, 2.9 times that`; one for each. */
export function bounding({ by, measured, unit, bounds = [] }: Verdict): readonly string[] {
  return bounds.map((bound) => {
    const far = bound.measured > 0 ? `, ${shown(measured / bound.measured)} times that` : ''
    return `${bound.arm}: ${signed(bound.measured, by)} ${unit}${far}`
  })
}

/** A value with its sign, where it is a difference. */
export const signed = (value: number, by: Judged['by']): string =>
  `${by.includes('added') && value >= 0 ? '+' : ''}${shown(value)}`

/** The figure as a table for people: medians with their spread, and what each is of the base. */
export function text(figure: Figure): string {
  const base = median(figure.arms.find(({ kind }) => kind === 'base')?.values ?? [])
  const rows = figure.arms.map(({ name, values, absent }) => {
    if (values.length === 0) return `  ${name.padEnd(26)}not measured: ${absent ?? 'no value'}`
    const middle = median(values)
    const spread = `(${spreadOf(values)})`
    const beside = Number.isNaN(base) ? '' : `${shown((middle / base) * 100)} % of the base`
    return `  ${name.padEnd(26)}${shown(middle).padStart(9)} ${figure.unit.padEnd(8)} ${spread.padEnd(24)} ${beside}`.trimEnd()
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
