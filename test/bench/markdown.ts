// The targets of a run as one table of Markdown, which docs/performance.md holds.
import { type Arm, boundBy, bounding, type Figure, signed, shown, type Verdict, verdicts } from './figures.ts'

/** What it ran on, and a row for each target: what is asked, what was measured, what bounds it here, and what others take. */
export function markdown(machine: readonly string[], figures: readonly Figure[]): string {
  const rows = figures.flatMap((figure) => verdicts(figure).map((verdict) => row(figure, verdict)))
  const head = ['what', 'target', 'measured', 'bound, in the same run', 'others, in the same run', '']
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return `${machine.join(' ')}\n\n${lines.join('\n')}\n`
}

function row({ what, arms }: Figure, verdict: Verdict): readonly string[] {
  const { arm, by, target, measured, unit, isAtLeast, isHeld } = verdict
  const of = by === 'value' ? '' : by.includes('added') ? ' added' : ' of direct'
  const others = arms.filter(({ kind }) => kind === 'peer').map((peer) => other(peer, arms, verdict))
  return [
    `${what}: ${arm}`,
    `${isAtLeast === true ? '≥' : '≤'} ${shown(target)} ${unit}${of}`,
    `${signed(measured, by)} ${unit}`,
    bounding(verdict).join('; '),
    others.join('; '),
    isHeld ? 'held' : '**missed**',
  ]
}

function other({ name, values, absent }: Arm, arms: readonly Arm[], { by, unit }: Verdict): string {
  if (values.length === 0) return `${name}: not measured, ${absent ?? 'no value'}`
  return `${name} ${signed(boundBy(by, arms, name).measured, by)} ${unit}`
}
