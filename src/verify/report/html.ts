// A report as one HTML page: profiles by guarantees, each cell opening to its evidence. It loads nothing and runs nothing.
import {
  overall,
  type AssertionResult,
  type Inspection,
  type ProbeResult,
  type Verdict,
  type Verification,
} from '../result.ts'
import {
  allOf,
  assertionFacts,
  assertionsTitle,
  byGuarantee,
  countOf,
  earlierTries,
  factsOf,
  guarantees,
  inspectionFacts,
  serverTitle,
  subjectOf,
  madeBy,
  needsEyes,
} from './guarantees.ts'
import { style } from './html-style.ts'
import type { Report } from './format.ts'
import { markup } from './words.ts'

/** One cell of the matrix: what was tried for one guarantee under one profile. */
interface Cell {
  readonly id: string
  readonly title: string
  readonly promise: string
  readonly results: readonly Shown[]
}

interface Shown {
  readonly name: string
  readonly says: string
  readonly verdict: Verdict
  readonly facts: readonly string[]
}

/** Returns the page. A policy in it forbids scripts and every request, should some text have slipped through. */
export const htmlReport = ({ version, reported }: Report): string => {
  const all = reported.map(({ verification }) => verification)
  const rows = all.map((verification, index) => ({ verification, cells: cellsOf(verification, index) }))
  const verdict = worst([...all, ...all.flatMap(allOf)])
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sallyport verify: ${words[verdict]}</title>
<style>${style}</style>
</head>
<body>
<header>
<h1>What these sandboxes hold</h1>
<p class="verdict ${verdict}">${icons[verdict]} ${markup(summary(all))}</p>
</header>
<main>
${matrix(rows)}
${rows.map(({ cells, verification }) => problems(verification, cells)).join('')}
${about(all)}
</main>
<footer>sallyport ${markup(version)} · verify</footer>
${rows.flatMap(({ cells, verification }) => cells.map((cell) => panel(cell, verification))).join('\n')}
</body>
</html>
`
}

/** What was broken is the headline, also beside what could not be tried. */
const worst = (results: readonly { readonly verdict: Verdict }[]): Verdict =>
  results.some(({ verdict }) => verdict === 'fail') ? 'fail' : overall(results)

const words: Readonly<Record<Verdict, string>> = {
  pass: 'holds',
  'not-applicable': 'does not apply',
  'not-enforced': 'holds in part',
  fail: 'does not hold',
  error: 'not shown',
}
const icons: Readonly<Record<Verdict, string>> = {
  pass: '✓',
  'not-applicable': '∅',
  'not-enforced': '△',
  fail: '✕',
  error: '!',
}

const summary = (all: readonly Verification[]): string => {
  const { applicable, passed, failed, errors, notEnforced, notApplicable } = countOf(all.flatMap(allOf))
  const bad = [
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(errors > 0 ? [`${errors} could not be shown`] : []),
    ...(notEnforced > 0 ? [`${notEnforced} not enforced on this machine`] : []),
  ]
  const absent = notApplicable > 0 ? `; ${notApplicable} do not apply` : ''
  return bad.length === 0
    ? `All ${applicable} attempts were held${absent}`
    : `${bad.join(', ')}; ${passed} of ${applicable} held${absent}`
}

const cellsOf = (verification: Verification, row: number): readonly Cell[] => [
  ...byGuarantee(verification).map(({ guarantee: { group, title, promise }, probes }) => ({
    id: `r${row}-${group}`,
    title,
    promise,
    results: probes.map(shownProbe),
  })),
  ...(verification.inspections.length === 0
    ? []
    : [
        {
          id: `r${row}-server`,
          title: serverTitle,
          promise: 'The server itself ran, and its processes were looked at from outside.',
          results: verification.inspections.map(shownInspection),
        },
      ]),
  ...(verification.assertions.length === 0
    ? []
    : [
        {
          id: `r${row}-assertions`,
          title: assertionsTitle,
          promise: 'What the profile and test files state of their own.',
          results: verification.assertions.map(shownAssertion),
        },
      ]),
]

const shownProbe = (probe: ProbeResult): Shown => ({
  name: `${probe.number} ${probe.id}`,
  says: probe.protects,
  verdict: probe.verdict,
  facts: factsOf(probe),
})

const shownInspection = (inspection: Inspection): Shown => ({
  name: inspection.id,
  says: inspection.protects,
  verdict: inspection.verdict,
  facts: inspectionFacts(inspection),
})

const shownAssertion = (assertion: AssertionResult): Shown => ({
  name: assertion.text,
  says: assertion.reason,
  verdict: assertion.verdict,
  facts: assertionFacts(assertion),
})

interface Row {
  readonly verification: Verification
  readonly cells: readonly Cell[]
}

const meanings: readonly (readonly [Verdict, string])[] = [
  ['pass', 'held'],
  ['not-applicable', 'does not apply: nothing of the kind is in the sandbox'],
  ['not-enforced', 'nothing on this machine holds it, and the profile does not insist'],
  ['fail', 'not held'],
  ['error', 'could not be shown'],
]
const legend = meanings
  .map(
    ([verdict, text]) =>
      `<span class="legend"><b class="${verdict}">${icons[verdict]}</b> ${markup(text)}</span>`,
  )
  .join(' ')

/** Only columns that some row has; a gap is said to be one. */
const matrix = (rows: readonly Row[]): string => {
  const titles = [...guarantees.map(({ title }) => title), serverTitle, assertionsTitle].filter((title) =>
    rows.some(({ cells }) => cells.some((cell) => cell.title === title)),
  )
  const heads = titles.map((title) => `<th scope="col"><span>${markup(title)}</span></th>`).join('')
  const lines = rows.map(
    ({ verification, cells }) =>
      `<tr><th scope="row">${markup(verification.server ?? verification.profile)}<small>${markup(rowNote(verification))}</small></th>${titles
        .map((title) => matrixCell(cells.find((cell) => cell.title === title)))
        .join('')}</tr>`,
  )
  return `<div class="scroll"><table class="matrix"><thead><tr><td></td>${heads}</tr></thead><tbody>
${lines.join('\n')}
</tbody></table></div>
<p class="hint">Press a cell for its evidence. ${legend}</p>`
}

const rowNote = (verification: Verification): string =>
  [
    ...(verification.server === null ? [] : [verification.profile]),
    madeBy(verification),
    `${(verification.durationMs / 1000).toFixed(1)}\u00a0s`,
    ...earlierTries(verification),
  ].join(' · ')

const matrixCell = (cell: Cell | undefined): string => {
  if (cell === undefined) return '<td class="none">–</td>'
  const verdict = worst(cell.results)
  const { applicable, passed, notApplicable } = countOf(cell.results)
  const absent = notApplicable > 0 ? `, ${notApplicable} do not apply` : ''
  const label = `${cell.title}: ${passed} of ${applicable} held${absent}`
  const count = applicable === 0 ? '' : ` ${passed === applicable ? passed : `${passed}/${applicable}`}`
  const beside = notApplicable === 0 ? '' : `<small>${icons['not-applicable']} ${notApplicable}</small>`
  return `<td><button class="${verdict}" popovertarget="${cell.id}" data-title="${markup(cell.title)}" aria-label="${markup(label)}"><b>${icons[verdict]}</b>${count}${applicable === 0 ? ` ${notApplicable}` : beside}</button></td>`
}

const problems = (verification: Verification, cells: readonly Cell[]): string => {
  const bad = cells.flatMap(({ results }) => results.filter(needsEyes))
  return bad.length === 0
    ? ''
    : `<section><h2>${markup(subjectOf(verification))}: what does not hold, or is not enforced</h2>
${bad.map((shown) => entry(shown, true)).join('\n')}
</section>
`
}

const panel = ({ id, title, promise, results }: Cell, verification: Verification): string =>
  `<div popover id="${id}" class="panel"><div class="bar"><h2>${markup(subjectOf(verification))} · ${markup(title)}</h2><button popovertarget="${id}" popovertargetaction="hide" aria-label="Close">✕</button></div>
<p>${markup(promise)}</p>
${results.map((shown) => entry(shown, needsEyes(shown))).join('\n')}
</div>`

const entry = ({ name, says, verdict, facts }: Shown, isOpen: boolean): string =>
  `<details${isOpen ? ' open' : ''}><summary><span class="${verdict}">${icons[verdict]}</span> <span>${markup(says)} <code>${markup(name)}</code></span></summary><ul>${facts
    .map((fact) => `<li>${markup(fact)}</li>`)
    .join('')}</ul></details>`

const about = (all: readonly Verification[]): string =>
  `<section><h2>Where this was tried</h2><div class="scroll"><table class="facts"><thead><tr><th>What</th><th>Started</th><th>Kernel</th><th>As uid</th><th>Sandbox</th><th>Limits held by</th></tr></thead><tbody>
${all.map(aboutRow).join('\n')}
</tbody></table></div></section>`

const aboutRow = (verification: Verification): string => {
  const { host, startedAt, enforcedBy } = verification
  const limits = Object.entries(enforcedBy).map(([limit, by]) => `${limit} ${by}`)
  const cells = [
    subjectOf(verification),
    startedAt.replace('T', ' ').replace(/\.\d+Z$/, ' UTC'),
    `${host.kernel} ${host.arch}`,
    String(host.uid),
    host.tool === null ? madeBy(verification) : `${madeBy(verification)} ${host.tool}`,
    limits.join(', '),
  ]
  return `<tr>${cells.map((text) => `<td>${markup(text)}</td>`).join('')}</tr>`
}
