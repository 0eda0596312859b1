// Plots of values over time or over servers: lines with their names at the end, one axis from nothing, one unit.
import { shown } from '../bench/figures.ts'
import { at, escape, evenly } from '../bench/page.ts'

export interface Curve {
  readonly name: string
  /** Which of the page's colours, 0 to 3 */
  readonly hue: number
  readonly points: readonly (readonly [x: number, y: number])[]
}

interface Axes {
  readonly what: string
  readonly unit: string
  /** What goes along below, with its unit */
  readonly along: string
  readonly hasDots?: boolean
}

const [width, height] = [720, 220]
const [left, right, top, bottom] = [58, 96, 10, 40]

/** One plot. Points that are no numbers are left out. */
export function plot({ what, unit, along, hasDots = false }: Axes, curves: readonly Curve[]): string {
  const drawn = curves.map((curve) => ({
    ...curve,
    points: curve.points.filter(([, y]) => Number.isFinite(y)),
  }))
  const all = drawn.flatMap(({ points }) => points)
  const [toX, toY] = [Math.max(1, ...all.map(([x]) => x)), 1.05 * Math.max(1e-9, ...all.map(([, y]) => y))]
  const x = (value: number): number => left + (value / toX) * (width - left - right)
  const y = (value: number): number => height - bottom - (value / toY) * (height - top - bottom)
  const scales = [
    ...evenly(toY).map(
      (tick) =>
        `<line class="tick" x1="${left}" x2="${width - right}" y1="${at(y(tick))}" y2="${at(y(tick))}"/>` +
        `<text class="scale of-y" x="${left - 8}" y="${at(y(tick) + 4)}">${shown(tick)}</text>`,
    ),
    ...evenly(toX).map(
      (tick) => `<text class="scale" x="${at(x(tick))}" y="${height - bottom + 18}">${shown(tick)}</text>`,
    ),
    `<text class="scale" x="${at((left + width - right) / 2)}" y="${height - 4}">${escape(along)}</text>`,
  ]
  const places = apart(drawn.map(({ points }) => y(points.at(-1)?.[1] ?? 0)))
  const lines = drawn.map(({ name, hue, points }, index) => {
    const path = points.map(([px, py]) => `${at(x(px))},${at(y(py))}`).join(' ')
    const dots = hasDots
      ? points.map(([px, py]) => `<circle cx="${at(x(px))}" cy="${at(y(py))}" r="3"/>`)
      : []
    return (
      `<g class="hue${hue}"><title>${escape(name)}: ${shown(points.at(-1)?.[1] ?? Number.NaN)} ${escape(unit)} at the end</title>` +
      `<polyline points="${path}"/>${dots.join('')}` +
      `<text class="of-line" x="${width - right + 8}" y="${at((places[index] ?? 0) + 4)}">${escape(name)}</text></g>`
    )
  })
  return `<figure><figcaption>${escape(what)}, ${escape(unit)}</figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(what)}, ${escape(unit)}, by ${escape(along)}">
${[...scales, ...lines].join('\n')}
</svg></figure>`
}

/** Where the names stand so that none covers another: each where its line ends, or as far below the one above as it must be. */
function apart(wanted: readonly number[]): readonly number[] {
  const placed: number[] = []
  let last = Number.NEGATIVE_INFINITY
  for (const index of [...wanted.keys()].toSorted((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0))) {
    last = Math.max(wanted[index] ?? 0, last + 15)
    placed[index] = last
  }
  const over = Math.max(0, last - (height - bottom))
  return placed.map((it) => it - over)
}
