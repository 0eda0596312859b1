// The targets of a run as one table of Markdown, which docs/performance.md holds.
import {
  bounding,
  type Broken,
  brokenAs,
  type Figure,
  measuredOf,
  othersOf,
  shown,
  type Verdict,
  verdicts,
} from './figures.ts'

/** What it ran on, and a row for each target: what is asked, what was measured, what bounds it here, and what others take. */
export function markdown(
  machine: readonly string[],
  figures: readonly Figure[],
  broken: readonly Broken[],
): string {
  const rows = figures.flatMap((figure) => verdicts(figure).map((verdict) => row(figure, verdict)))
  const head = ['what', 'target', 'measured', 'bound, in the same run', 'others, in the same run', '']
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.map(cell).join(' | ')} |`)
  const failed = broken.map((failed) => cell(brokenAs(failed)))
  return `${[machine.join(' '), lines.join('\n'), ...failed].join('\n\n')}\n`
}

function row(figure: Figure, verdict: Verdict): readonly string[] {
  const { arm, by, target, unit, isAtLeast, outcome } = verdict
  const of = by === 'value' ? '' : by.includes('added') ? ' added' : ' of direct'
  return [
    `${figure.what}: ${arm}`,
    `${isAtLeast === true ? '≥' : '≤'} ${shown(target)} ${unit}${of}`,
    measuredOf(verdict),
    bounding(verdict).join('; '),
    othersOf(figure, verdict).join('; '),
    outcome === 'held' ? outcome : `**${outcome}**`,
  ]
}

/** What a reason says may hold what ends a cell. */
const cell = (said: string): string => said.replaceAll('|', '\\|').replaceAll('\n', ' ')
