// `npm run bench`: every figure that has a target and some that have none, each script in a process of its own. As text, and with
// --json FILE, --html FILE and --markdown FILE as data, as a page with plots and as the table of docs/performance.md. A figure that misses
// its target is printed as missed, beside what bounds it on this machine. --only NAME[,NAME] runs some of them, --quick a round or two of
// each, which shows that it works and nothing else.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { bounding, type Broken, brokenAs, type Figure, text, verdicts, worded } from './figures.ts'
import { tempDir } from '../support/temp-dir.ts'
import { asData } from './data.ts'
import { describeMachine } from './machine.ts'
import { markdown } from './markdown.ts'
import { page } from './page.ts'
import { holdToTwo } from './processors.ts'
import { runScript } from './script-run.ts'
import { unwritable } from './writable.ts'

const statusFailed = 1
const statusUsage = 7
const statusInterrupted = 130

/** The scripts, with the arguments of a whole run and of a quick one. */
const scripts: Readonly<
  Record<string, { readonly whole: readonly string[]; readonly quick: readonly string[] }>
> = {
  'governed-call': { whole: ['20000', '5'], quick: ['1000', '1'] },
  'sdk-calls': { whole: ['7'], quick: ['1', '100'] },
  launch: { whole: ['25'], quick: ['1'] },
  pool: { whole: ['25'], quick: ['1'] },
  'container-launch': { whole: ['15'], quick: ['1'] },
  footprint: { whole: ['100', '30', '3'], quick: ['2', '1', '1'] },
  egress: { whole: ['300', '--peers'], quick: ['1', '--peers'] },
  stop: { whole: ['50', '3', '15'], quick: ['2', '1', '1'] },
}

const options = readOptions()
if (options.help) {
  process.stdout.write(`${usage()}\n`)
  process.exit()
}
const wanted = options.only?.split(',') ?? Object.keys(scripts)
const unknown = wanted.filter((name) => !Object.hasOwn(scripts, name))
if (unknown.length > 0)
  stop(`--only ${unknown.join(',')}: no such figures; it takes ${Object.keys(scripts).join(', ')}`)
const whyNot = unwritable([options.json, options.html, options.markdown])
if (whyNot !== null) stop(whyNot)

process.stdout.on('error', () => undefined) // a reader that has gone is no reason to write no files
const processors = holdToTwo()
const machine = [
  ...describeMachine(),
  processors,
  ...(options.quick ? ['A quick run: these figures say nothing.'] : []),
]
say(machine.join('\n'))
const figures: Figure[] = []
const broken: Broken[] = []
await using peers = await tempDir()
let isBrokenOff = false
for (const part of wanted) {
  const script = fileURLToPath(new URL(`${part}.ts`, import.meta.url))
  const args = scripts[part]?.[options.quick ? 'quick' : 'whole'] ?? []
  const found = await runScript(script, args, { peers: peers.path })
  isBrokenOff = found.isBrokenOff
  if (isBrokenOff) break
  for (const figure of found.figures) say(`\n${text(figure)}`)
  figures.push(...found.figures)
  if (found.failure === null) continue
  const failed: Broken = { part, reason: found.failure, figures: found.figures.length }
  broken.push(failed)
  say(`\n${brokenAs(failed)}`)
}
if (!isBrokenOff) {
  summary()
  writeFiles()
}
process.exitCode = isBrokenOff ? statusInterrupted : broken.length > 0 ? statusFailed : 0

function summary(): void {
  const judged = figures.flatMap((figure) => verdicts(figure).map((verdict) => ({ figure, verdict })))
  const those = (outcome: string) => judged.filter(({ verdict }) => verdict.outcome === outcome)
  say(`\n${those('held').length} of ${judged.length} targets held`)
  for (const { figure, verdict } of [...those('missed'), ...those('not measured')]) {
    say(`  ${verdict.outcome}: ${figure.what}: ${worded(verdict)}`)
    for (const bound of bounding(verdict)) say(`    bound here by ${bound}`)
  }
  for (const failed of broken) say(`  ${brokenAs(failed)}`)
}

function writeFiles(): void {
  const { json, html } = options
  if (json !== undefined) writeFileSync(json, asData(machine, figures, broken))
  if (html !== undefined) writeFileSync(html, page(machine, figures, broken))
  if (options.markdown !== undefined) writeFileSync(options.markdown, markdown(machine, figures, broken))
}

function say(lines: string): void {
  process.stdout.write(`${lines}\n`)
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        json: { type: 'string' },
        html: { type: 'string' },
        markdown: { type: 'string' },
        only: { type: 'string' },
        quick: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    return stop(`${(error as Error).message}\n${usage()}`)
  }
}

function usage(): string {
  const names = Object.keys(scripts)
  return [
    'npm run bench -- [--only NAME,NAME] [--quick] [--json FILE] [--html FILE] [--markdown FILE]',
    `  --only      some of ${names.join(', ')}`,
    '  --quick     a round or two of each, which shows that it works and nothing else',
    '  --json      the figures as data; --html as a page with plots; --markdown as the table of docs/performance.md',
  ].join('\n')
}

function stop(why: string): never {
  process.stderr.write(`bench: ${why}\n`)
  process.exit(statusUsage)
}
