// `npm run scale -- [--servers N] [--hosts N] [--seconds N] [--rate N] [--json FILE] [--html FILE]`: how latency, CPU, memory and
// descriptors grow from one server to many, and that they stay where they are under a steady load. Status 1 where they don't.
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { describeMachine } from '../bench/machine.ts'
import { unwritable } from '../bench/writable.ts'
import { asked, misused, mostSeconds } from '../support/asked.ts'
import type { Verdict } from './judge.ts'

const usage = `npm run scale -- [--servers N] [--hosts N] [--seconds N] [--rate N] [--json FILE] [--html FILE] [--load MODULE]

  --servers N    how many servers there are in the end, 200 unless said
  --hosts N      how many hosts call them, each servers of its own, 100 unless said
  --seconds N    how long the steady load lasts, 180 unless said; the steps from one server to all come before it
  --rate N       calls a second of each host, 5 unless said, at moments of chance
  --json FILE    all that was measured, as data
  --html FILE    the same as a page with plots
  --load MODULE  a module that the daemon loads beside its own, to see what it changes

Status 0: all held, 1: a bound is broken, 2: something that has a bound was not measured, 7: an argument is none, 130: broken off.
`
const { values: options } = asked('scale', () =>
  parseArgs({
    options: {
      servers: { type: 'string', default: '200' },
      hosts: { type: 'string', default: '100' },
      seconds: { type: 'string', default: '180' },
      rate: { type: 'string', default: '5' },
      load: { type: 'string' },
      json: { type: 'string' },
      html: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  }),
)
if (options.help) {
  process.stdout.write(usage)
  process.exit()
}
const [servers = 0, hosts = 0, seconds = 0, rate = 0] = (
  ['servers', 'hosts', 'seconds', 'rate'] as const
).map((name) => amount(name, options[name]))
/** Connections of one user that a daemon takes, less the operator's and one that comes */
const mostServers = 250
/** Calls a second of all hosts together: more than any daemon answers, and than one process of hosts makes in time */
const mostRate = 10_000
/** Calls of a run, of which each is kept until the end */
const mostCalls = 10_000_000
if (servers > mostServers)
  misused(
    'scale',
    `--servers ${servers}: a daemon takes 256 connections of one user, so use at most ${mostServers}`,
  )
if (hosts > servers)
  misused(
    'scale',
    `--hosts ${hosts}: each host has servers of its own, so use at most as many hosts as servers, ${servers}`,
  )
if (seconds > mostSeconds)
  misused('scale', `--seconds ${seconds}: use at most ${mostSeconds}, which is a week`)
const together = rate * hosts
if (together > mostRate)
  misused(
    'scale',
    `--rate ${rate}: of ${hosts} hosts together that is ${together} calls a second; use at most ${mostRate / hosts}`,
  )
if (together * seconds > mostCalls)
  misused(
    'scale',
    `--seconds ${seconds}: at ${together} calls a second that is ${together * seconds}; use at most ${Math.floor(mostCalls / together)}`,
  )
const whyNot = unwritable([options.json, options.html])
if (whyNot !== null) misused('scale', whyNot)

// What is refused is refused before all that a run needs is loaded.
const [{ run }, { judge }, { page }] = await Promise.all([
  import('./run.ts'),
  import('./judge.ts'),
  import('./page.ts'),
])
const machine = describeMachine()
const say = (line: string): void => void process.stdout.write(`${line}\n`)
for (const line of machine) say(line)
const load = options.load === undefined ? null : resolve(options.load)
const found = await run({ servers, hosts, seconds, rate, load }, say)
const verdicts = judge(found)
for (const { what, measured, bound, outcome } of verdicts)
  say(
    outcome === 'not measured'
      ? `${outcome}  ${what}, ${bound}`
      : `${(outcome === 'held' ? outcome : 'BROKEN').padEnd(12)}  ${what}: ${measured}, ${bound}`,
  )
if (options.json !== undefined)
  writeFileSync(options.json, `${JSON.stringify({ machine, ...found, verdicts }, null, 2)}\n`)
if (options.html !== undefined) writeFileSync(options.html, page(machine, found, verdicts))
const has = (outcome: Verdict['outcome']): boolean => verdicts.some((it) => it.outcome === outcome)
process.exitCode = has('broken') ? 1 : has('not measured') ? 2 : 0

function amount(name: string, text: string): number {
  const value = Number(text)
  if (!(value > 0 && Number.isFinite(value)) || (name !== 'rate' && !Number.isInteger(value)))
    misused('scale', `--${name} ${text}: use a ${name === 'rate' ? '' : 'whole '}number above 0`)
  return value
}
