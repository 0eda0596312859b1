// The figures as one page that needs nothing else: the targets as a table, then a plot for each figure with a dot for every round.
import {
  type Arm,
  between,
  bounding,
  type Broken,
  brokenAs,
  type Figure,
  measuredOf,
  median,
  othersOf,
  shown,
  spreadOf,
  type Verdict,
  verdicts,
} from './figures.ts'

const width = 720
const [right, row] = [125, 30]
/** Room for the names at the left of a plot, at least and by a letter of 12 px */
const [leastLeft, ofLetter] = [190, 6.4]

/** A whole HTML document, for light and dark screens. */
export function page(
  machine: readonly string[],
  figures: readonly Figure[],
  broken: readonly Broken[],
): string {
  const rows = figures.flatMap((figure) => verdicts(figure).map((verdict) => judgement(figure, verdict)))
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sallyport: what it costs</title>
<style>${style}</style>
<main>
<h1>What Sallyport costs</h1>
${machine.map((line) => `<p class="machine">${escape(line)}</p>`).join('\n')}
${broken.map((failed) => `<p class="missed">${escape(brokenAs(failed))}</p>`).join('\n')}
<div class="wide"><table class="targets">
<thead><tr><th>what</th><th>arm</th><th>target</th><th>measured</th><th></th><th>bound, in the same run</th><th>others, in the same run</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table></div>
<ul class="legend">${(['base', 'bound', 'ours', 'peer'] as const).map((kind) => `<li class="${kind}">${meaning[kind]}</li>`).join('')}</ul>
${figures.map(section).join('\n')}
</main>
</html>
`
}

function judgement(figure: Figure, verdict: Verdict): string {
  const { arm, by, target, unit, isAtLeast, outcome } = verdict
  const of = by === 'value' ? '' : `, ${by.includes('added') ? 'added' : 'of the base'}`
  return (
    `<tr><td><a href="#${figure.id}">${escape(figure.what)}</a></td><td>${escape(arm)}</td>` +
    `<td>${isAtLeast === true ? '≥' : '≤'} ${shown(target)} ${escape(unit)}${of}</td>` +
    `<td>${escape(measuredOf(verdict))}</td>` +
    `<td class="${outcome === 'held' ? 'held' : 'missed'}">${outcome}</td>` +
    `<td>${bounding(verdict).map(escape).join('<br>')}</td>` +
    `<td>${othersOf(figure, verdict).map(escape).join('<br>')}</td></tr>`
  )
}

const meaning = {
  base: 'what the others are held against',
  bound: 'what this machine can’t do better than',
  ours: 'Sallyport',
  peer: 'others',
} as const

function section(figure: Figure): string {
  const absent = figure.arms.filter(({ values }) => values.length === 0)
  const notes = [
    ...absent.map(({ name, absent: why }) => `${name}: not measured, ${why ?? 'no value'}`),
    figure.note ?? '',
  ]
  return `<section id="${figure.id}"><h2>${escape(figure.what)}</h2>
<div class="strips">${plot(figure)}</div>
${notes
  .filter((note) => note !== '')
  .map((note) => `<p>${escape(note)}</p>`)
  .join('\n')}</section>`
}

/** One line for each arm: a dot for every round, a bar at the median; logarithmic where the largest is twenty times the least. */
function plot({ what, unit, arms }: Figure): string {
  const there = arms.filter(({ values }) => values.length > 0)
  const all = there.flatMap(({ values }) => values)
  const [least, most] = [Math.min(...all), Math.max(...all)]
  const isLog = least > 0 && most / least > 20
  const [from, to] = isLog ? [least * 0.8, most * 1.2] : [0, most === 0 ? 1 : most * 1.05]
  const share = (value: number): number =>
    isLog ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from)
  const left = Math.max(leastLeft, ...there.map(({ name }) => 24 + name.length * ofLetter))
  const x = (value: number): number => left + share(value) * (width - left - right)
  const ticks = isLog ? powers(from, to) : evenly(to)
  const height = there.length * row + 34
  const lines = ticks.map(
    (tick) =>
      `<line class="tick" x1="${at(x(tick))}" x2="${at(x(tick))}" y1="4" y2="${height - 24}"/>` +
      `<text class="scale" x="${at(x(tick))}" y="${height - 8}">${shown(tick)}</text>`,
  )
  const axis = `<text class="scale of-x" x="${at(left - 12)}" y="${height - 8}">${escape(unit)}${isLog ? ', logarithmic' : ''}</text>`
  const drawn = there.map((arm, index) => strip(arm, { left, y: index * row + 18 }, x, unit))
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(what)}, ${escape(unit)}">
${[axis, ...lines, ...drawn].join('\n')}
</svg>`
}

function strip(
  { name, kind, values }: Arm,
  { left, y }: { readonly left: number; readonly y: number },
  x: (value: number) => number,
  unit: string,
): string {
  const middle = median(values)
  const dots = values.map((value) => `<circle cx="${at(x(value))}" cy="${y}" r="3"/>`).join('')
  const spread = `${between(spreadOf(values))} ${unit}`
  return (
    `<g class="${kind}"><title>${escape(name)}: ${shown(middle)} ${escape(unit)}, ${escape(spread)}</title>` +
    `<text class="name" x="${at(left - 12)}" y="${y + 4}">${escape(name)}</text>${dots}` +
    `<line class="middle" x1="${at(x(middle))}" x2="${at(x(middle))}" y1="${y - 10}" y2="${y + 10}"/>` +
    `<text class="value" x="${width - right + 12}" y="${y + 4}">${shown(middle)} ${escape(unit)}</text></g>`
  )
}

/** Round values from nothing to `to`, five at most. */
export function evenly(to: number): readonly number[] {
  const rough = 10 ** Math.floor(Math.log10(to / 5))
  const step = [1, 2, 5, 10].map((part) => part * rough).find((it) => to / it <= 5) ?? to
  return Array.from({ length: Math.floor(to / step) + 1 }, (_, n) => n * step)
}

/** The powers of ten between two values; where those are few, twice and five times each too. */
function powers(from: number, to: number): readonly number[] {
  const [first, last] = [Math.floor(Math.log10(from)), Math.ceil(Math.log10(to))]
  const steps = last - first > 3 ? [1] : [1, 2, 5]
  const exponents = Array.from({ length: last - first + 1 }, (_, n) => first + n)
  return exponents
    .flatMap((exponent) => steps.map((step) => step * 10 ** exponent))
    .filter((tick) => tick >= from && tick <= to)
}

/** A place in a drawing. */
export const at = (value: number): string => value.toFixed(1)

/** As text of a document, or of an attribute in double quotes. */
export const escape = (said: string): string =>
  said.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** Colours, type and tables, for light and dark screens. */
export const style = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #667085; --line: #e2e6ec; --back: #fff; --ours: #0b6bcb; --base: #667085; --bound: #98a2b3; --peer: #b54708; --held: #067647; --missed: #b42318 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #2c3442; --back: #12161d; --ours: #6db3f8; --base: #98a2b3; --bound: #667085; --peer: #f79009; --held: #47cd89; --missed: #f97066 } }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 78rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
h1 { font-size: 1.6rem; margin: 0 0 .5rem } h2 { font-size: 1.05rem; margin: 2.2rem 0 .4rem }
.machine, section p { color: var(--soft); margin: .1rem 0; font-size: .87rem }
.wide { overflow-x: auto; margin-top: 1.5rem } .strips { overflow-x: auto } .strips svg { display: block; min-width: 34rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .4rem .7rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
th { color: var(--soft); font-weight: 500 } a { color: inherit; text-decoration-color: var(--line) }
td:nth-child(n+2) { white-space: nowrap }
.targets { font-size: .87rem } .targets td { white-space: normal } .targets td:first-child { min-width: 12rem } .targets td:nth-child(n+6) { min-width: 11rem }
.held { color: var(--held) } .missed { color: var(--missed); font-weight: 600 }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.3rem; padding: 0; margin: 1.5rem 0 0; color: var(--soft); font-size: .87rem }
.legend li::before { content: ''; display: inline-block; width: .6rem; height: .6rem; border-radius: 50%; margin-right: .4rem; background: var(--c) }
.base { --c: var(--base) } .bound { --c: var(--bound) } .ours { --c: var(--ours) } .peer { --c: var(--peer) }
svg { width: 100%; max-width: 52rem; height: auto; font-size: 12px } svg text { fill: var(--ink) }
.tick { stroke: var(--line) } .scale { fill: var(--soft); text-anchor: middle } .name, .of-x { text-anchor: end }
circle { fill: var(--c); fill-opacity: .45 } .middle { stroke: var(--c); stroke-width: 2.5 } .ours .name { font-weight: 600 }
`
