// `npm run scale -- [--servers N] [--hosts N] [--seconds N] [--rate N] [--json FILE] [--html FILE]`: how latency, CPU, memory and
// descriptors grow from one server to many, and that they stay where they are under a steady load. Status 1 where they don't.
// --load MODULE has the daemon load a module beside its own, to see what that changes.
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { describeMachine } from '../bench/machine.ts'
import { unwritable } from '../bench/writable.ts'

const usage =
  'npm run scale -- [--servers N] [--hosts N] [--seconds N] [--rate N] [--json FILE] [--html FILE] [--load MODULE]'
const options = readOptions()
if (options.help) {
  process.stdout.write(`${usage}\n`)
  process.exit()
}
const [servers = 0, hosts = 0, seconds = 0, rate = 0] = (
  ['servers', 'hosts', 'seconds', 'rate'] as const
).map((name) => amount(name, options[name]))
/** Connections of one user that a daemon takes, less the operator's and one that comes */
const mostServers = 250
if (servers > mostServers)
  stop(`--servers ${servers}: a daemon takes 256 connections of one user, so use at most ${mostServers}`)
if (hosts > servers)
  stop(
    `--hosts ${hosts}: each host has servers of its own, so use at most as many hosts as servers, ${servers}`,
  )
const whyNot = unwritable([options.json, options.html])
if (whyNot !== null) stop(whyNot)

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
const outcome = await run({ servers, hosts, seconds, rate, load }, say)
const verdicts = judge(outcome)
for (const { what, measured, bound, isHeld } of verdicts)
  say(`${isHeld ? 'held  ' : 'BROKEN'}  ${what}: ${measured}, ${bound}`)
if (options.json !== undefined)
  writeFileSync(options.json, `${JSON.stringify({ machine, ...outcome, verdicts }, null, 2)}\n`)
if (options.html !== undefined) writeFileSync(options.html, page(machine, outcome, verdicts))
process.exitCode = verdicts.every(({ isHeld }) => isHeld) ? 0 : 1

function readOptions() {
  try {
    return parseArgs({
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
    }).values
  } catch (error) {
    return stop(`${(error as Error).message}: use ${usage}`)
  }
}

function amount(name: string, text: string): number {
  const value = Number(text)
  if (!(value > 0) || (name !== 'rate' && !Number.isInteger(value)))
    stop(`--${name} ${text}: use a ${name === 'rate' ? '' : 'whole '}number above 0`)
  return value
}

function stop(why: string): never {
  process.stderr.write(`scale: ${why}\n`)
  process.exit(7)
}
