// Plots of values over time or over servers: lines with their names above them, one axis from nothing, one unit.
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
  /** Null for what is counted */
  readonly unit: string | null
  /** What goes along below, with its unit */
  readonly along: string
  readonly hasDots?: boolean
}

const [width, height] = [720, 220]
const [left, right, top, bottom] = [76, 24, 16, 50]

/** One plot. Points that are no numbers are left out. */
export function plot({ what, unit, along, hasDots = false }: Axes, curves: readonly Curve[]): string {
  const drawn = curves.map((curve) => ({
    ...curve,
    points: curve.points.filter(([, y]) => Number.isFinite(y)),
  }))
  const all = drawn.flatMap(({ points }) => points)
  const highest = most(
    0,
    all.map(([, y]) => y),
  )
  const [toX, toY] = [
    most(
      1,
      all.map(([x]) => x),
    ),
    highest === 0 ? 1 : 1.05 * highest,
  ]
  const x = (value: number): number => left + (value / toX) * (width - left - right)
  const y = (value: number): number => height - bottom - (value / toY) * (height - top - bottom)
  const scales = [
    ...evenly(toY).map(
      (tick) =>
        `<line class="tick" x1="${left}" x2="${width - right}" y1="${at(y(tick))}" y2="${at(y(tick))}"/>` +
        `<text class="scale of-y" x="${left - 8}" y="${at(y(tick) + 4)}">${shown(tick)}</text>`,
    ),
    ...evenly(toX).map(
      (tick) => `<text class="scale" x="${at(x(tick))}" y="${height - bottom + 21}">${shown(tick)}</text>`,
    ),
    `<text class="scale" x="${at((left + width - right) / 2)}" y="${height - 4}">${escape(along)}</text>`,
  ]
  const lines = drawn.map(({ name, hue, points }) => {
    const path = points.map(([px, py]) => `${at(x(px))},${at(y(py))}`).join(' ')
    const dots = hasDots
      ? points.map(([px, py]) => `<circle cx="${at(x(px))}" cy="${at(y(py))}" r="3"/>`)
      : []
    return (
      `<g class="hue${hue}"><title>${escape(name)}: ${shown(points.at(-1)?.[1] ?? Number.NaN)}${unit === null ? '' : ` ${escape(unit)}`} at the end</title>` +
      `<polyline points="${path}"/>${dots.join('')}</g>`
    )
  })
  const titled = escape(unit === null ? what : `${what}, ${unit}`)
  return `<figure><figcaption>${titled}</figcaption>
<ul class="legend">${curves.map(({ name, hue }) => `<li class="hue${hue}">${escape(name)}</li>`).join('')}</ul>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${titled}, by ${escape(along)}">
${[...scales, ...lines].join('\n')}
</svg></figure>`
}

/** The most of any number of values, of which a call takes only so many. */
const most = (least: number, values: readonly number[]): number =>
  values.reduce((found, value) => Math.max(found, value), least)
