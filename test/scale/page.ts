// A run as one page that needs nothing else: what was held, a table and plots of how it grew, and plots of the steady load.
import { shown } from '../bench/figures.ts'
import { escape, style as plain } from '../bench/page.ts'
import { plot } from './curves.ts'
import type { Verdict } from './judge.ts'
import type { Latency, Outcome, Step } from './run.ts'

/** A whole HTML document, for light and dark screens. */
export function page(machine: readonly string[], outcome: Outcome, verdicts: readonly Verdict[]): string {
  const { servers, hosts, seconds, rate } = outcome.wanted
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sallyport: ${servers} servers, ${hosts} hosts</title>
<style>${plain}${own}</style>
<main>
<h1>${servers} servers, ${hosts} hosts</h1>
${machine.map((line) => `<p class="machine">${escape(line)}</p>`).join('\n')}
<p class="machine">Each host calls ${rate} times a second, at moments of chance and whatever was answered; a call takes from the moment it was due until its answer is there. Hosts are in one process of their own, whose cost is not the daemon’s. At each step there are as many of the hosts, in proportion, as of the servers.</p>
<div class="wide"><table>
<thead><tr><th>what</th><th>bound</th><th>measured</th><th></th></tr></thead>
<tbody>${verdicts.map(verdictRow).join('\n')}</tbody></table></div>
<h2>From one server to ${servers}</h2>
<div class="wide"><table class="numbers">
<thead><tr>${columns.map(([name]) => `<th>${escape(name)}</th>`).join('')}</tr></thead>
<tbody>${outcome.steps.map(stepRow).join('\n')}</tbody></table></div>
<p class="machine">${escape(inWords(outcome.steps))}</p>
${growth(outcome.steps).join('\n')}
<h2>${seconds} s of a steady load</h2>
<p class="machine">${escape(latencyWords(outcome.steady))} Between its five parts nobody calls, and what lives is counted.</p>
${steady(outcome).join('\n')}
</main>
</html>
`
}

const verdictRow = ({ what, bound, measured, outcome }: Verdict): string =>
  `<tr><td>${escape(what)}</td><td>${escape(bound)}</td><td>${escape(measured)}</td>` +
  `<td class="${outcome === 'held' ? 'held' : 'missed'}">${outcome}</td></tr>`

function latencyWords({ calls, p50, p95, p99, max }: Latency): string {
  const counted = `${calls.toLocaleString('en')} calls`
  if (Number.isNaN(p50)) return `${counted}, and none with an answer: what one takes is not measured.`
  return (
    `${counted}: median ${shown(p50)} ms, 95 % within ${shown(p95)} ms, 99 % within ${shown(p99)} ms, ` +
    `the longest ${shown(max)} ms.`
  )
}

/** What a step is told by. */
export const columns: readonly (readonly [name: string, of: (step: Step) => number])[] = [
  ['servers', (it) => it.servers],
  ['hosts', (it) => it.hosts],
  ['launch ms', (it) => it.launchMs],
  ['CPU at rest %', (it) => it.restCpu],
  ['CPU a call µs', (it) => it.callUs],
  ['p50 ms', (it) => it.latency.p50],
  ['p95 ms', (it) => it.latency.p95],
  ['p99 ms', (it) => it.latency.p99],
  ['max ms', (it) => it.latency.max],
  ['living MiB', (it) => it.standing.livingMib],
  ['RSS MiB', (it) => it.standing.rssMib],
  ['descriptors', (it) => it.standing.descriptors],
  ['processes beside', (it) => it.standing.processes],
  ['PSS beside MiB', (it) => it.standing.pssMib],
]

const stepRow = (step: Step): string =>
  `<tr>${columns.map(([, of]) => `<td>${shown(of(step))}</td>`).join('')}</tr>`

/** How it grew, in a sentence or two, for those who read no plots. */
export function inWords(steps: readonly Step[]): string {
  const [first, last] = [steps[0], steps.at(-1)]
  if (first === undefined || last === undefined || first === last) return 'One step shows no growth.'
  const each = (of: (step: Step) => number): string =>
    shown((of(last) - of(first)) / (last.servers - first.servers))
  const both = (of: (step: Step) => number, unit: string): string =>
    `${shown(of(first))} ${unit} with ${first.servers} and ${shown(of(last))} with ${last.servers}`
  return (
    `From ${first.servers} to ${last.servers}, a further server took ${each((it) => it.standing.livingMib * 1024)} KiB that live in the daemon ` +
    `and ${each((it) => it.standing.descriptors)} of its descriptors, and beside it ${each((it) => it.standing.processes)} processes ` +
    `with ${each((it) => it.standing.pssMib * 1024)} KiB of PSS, the servers’ own apart. A call took ${both((it) => it.latency.p50, 'ms')} at the median, ` +
    `and ${both((it) => it.callUs, 'µs')} of the daemon’s CPU. While nobody called, the daemon used ${both((it) => it.restCpu, '% of a processor')}.`
  )
}

/** What stands around the servers, them and the daemon left out. */
const besidePss = 'PSS of the sandboxes, their servers apart'
const besideProcesses = 'processes of the sandboxes, their servers apart'

function growth(steps: readonly Step[]): readonly string[] {
  const along = 'servers'
  const line = (of: (step: Step) => number): readonly (readonly [number, number])[] =>
    steps.map((step) => [step.servers, of(step)])
  const to = (what: string, unit: string | null, curves: Parameters<typeof plot>[1]): string =>
    plot({ what, unit, along, hasDots: true }, curves)
  return [
    to('How long a call takes', 'ms', [
      { name: 'median', hue: 0, points: line((it) => it.latency.p50) },
      { name: '95 %', hue: 1, points: line((it) => it.latency.p95) },
      { name: '99 %', hue: 2, points: line((it) => it.latency.p99) },
    ]),
    to('CPU of the daemon for a call', 'µs', [{ name: 'a call', hue: 0, points: line((it) => it.callUs) }]),
    to('CPU of the daemon while nobody calls', '% of one processor', [
      { name: 'at rest', hue: 0, points: line((it) => it.restCpu) },
    ]),
    to('Memory', 'MiB', [
      { name: 'living in the daemon', hue: 0, points: line((it) => it.standing.livingMib) },
      { name: 'the daemon’s RSS', hue: 1, points: line((it) => it.standing.rssMib) },
      { name: besidePss, hue: 2, points: line((it) => it.standing.pssMib) },
    ]),
    to('Descriptors and processes', null, [
      { name: 'descriptors of the daemon', hue: 0, points: line((it) => it.standing.descriptors) },
      { name: besideProcesses, hue: 2, points: line((it) => it.standing.processes) },
    ]),
  ]
}

function steady({ seconds, calls, beside, standing }: Outcome): readonly string[] {
  const along = 'seconds'
  type Second = (typeof seconds)[number]
  const line = (of: (second: Second) => number | null): readonly (readonly [number, number])[] =>
    seconds.map((second) => [second.at, of(second) ?? Number.NaN])
  const calling = (of: (latency: Latency) => number): ReturnType<typeof line> =>
    calls.map((second) => [second.at, of(second)])
  return [
    plot({ what: 'How long a call takes that was due in this second', unit: 'ms', along }, [
      { name: 'median', hue: 0, points: calling((it) => it.p50) },
      { name: '95 %', hue: 1, points: calling((it) => it.p95) },
      { name: '99 %', hue: 2, points: calling((it) => it.p99) },
      { name: 'longest', hue: 3, points: calling((it) => it.max) },
    ]),
    plot({ what: 'Calls that were due', unit: 'a second', along }, [
      { name: 'calls', hue: 0, points: calling((it) => it.calls) },
    ]),
    plot({ what: 'CPU', unit: '%', along }, [
      { name: 'the daemon, of one processor', hue: 0, points: line((it) => it.cpu) },
      { name: 'the whole machine, of all', hue: 3, points: line((it) => it.machine) },
    ]),
    plot({ what: 'Memory', unit: 'MiB', along }, [
      { name: 'the daemon’s RSS', hue: 1, points: line((it) => it.rssMib) },
      { name: 'its heap, garbage included', hue: 3, points: line((it) => it.heapMib) },
      { name: 'living in the daemon', hue: 0, points: standing.map((it) => [it.at, it.livingMib]) },
      { name: besidePss, hue: 2, points: beside.map((it) => [it.at, it.pssMib]) },
    ]),
    plot({ what: 'Descriptors and processes', unit: null, along }, [
      { name: 'descriptors of the daemon', hue: 0, points: line((it) => it.descriptors) },
      { name: besideProcesses, hue: 2, points: beside.map((it) => [it.at, it.processes]) },
    ]),
  ]
}

const own = `
:root { --hue0: #0b6bcb; --hue1: #067647; --hue2: #b54708; --hue3: #98a2b3 }
@media (prefers-color-scheme: dark) { :root { --hue0: #6db3f8; --hue1: #47cd89; --hue2: #f79009; --hue3: #667085 } }
figure { margin: 1.4rem 0 0 } figcaption { font-size: .9rem; font-weight: 600 }
polyline { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round }
.hue0 { --c: var(--hue0) } .hue1 { --c: var(--hue1) } .hue2 { --c: var(--hue2) } .hue3 { --c: var(--hue3) }
svg .of-y { text-anchor: end } figure .legend { margin: .1rem 0 .3rem }
.numbers th, .numbers td { text-align: right; padding-right: .9rem } td:first-child { min-width: 0 }
@media (max-width: 40rem) { svg { font-size: 22px } table:not(.numbers) td:nth-child(n+2) { white-space: normal } }
`
