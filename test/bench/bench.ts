// `npm run bench`: every figure of DESIGN.md's table, each in a process of its own, as text, and with --json FILE and --html FILE as
// data and as a page with plots. A figure that misses its target is printed as missed. --only NAME[,NAME] runs some of them, --quick
// a round or two of each, which shows that it works and nothing else.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Figure, text, verdicts, worded } from './figures.ts'
import { describeMachine } from './machine.ts'
import { page } from './page.ts'

/** The scripts, with the arguments of a whole run and of a quick one. */
const scripts: Readonly<
  Record<string, { readonly whole: readonly string[]; readonly quick: readonly string[] }>
> = {
  'governed-call': { whole: ['20000', '5'], quick: ['2000', '1'] },
  'sdk-calls': { whole: ['7'], quick: ['1'] },
  launch: { whole: ['25'], quick: ['2'] },
  'container-launch': { whole: ['15'], quick: ['1'] },
  footprint: { whole: ['100', '30'], quick: ['5', '2'] },
  egress: { whole: ['300', '--peers'], quick: ['5'] },
  stop: { whole: ['50', '3', '15'], quick: ['5', '1', '1'] },
}

const { values: options } = parseArgs({
  options: {
    json: { type: 'string' },
    html: { type: 'string' },
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
})
const wanted = options.only?.split(',') ?? Object.keys(scripts)
const unknown = wanted.filter((name) => !(name in scripts))
if (unknown.length > 0) {
  process.stderr.write(`bench: no ${unknown.join(', ')}; --only takes ${Object.keys(scripts).join(', ')}\n`)
  process.exit(7)
}

const machine = [...describeMachine(), ...(options.quick ? ['A quick run: these figures say nothing.'] : [])]
process.stdout.write(`${machine.join('\n')}\n`)
const figures: Figure[] = []
const broken: string[] = []
for (const name of wanted) {
  const found = await run(name)
  if (found === null) broken.push(name)
  for (const figure of found ?? []) process.stdout.write(`\n${text(figure)}\n`)
  figures.push(...(found ?? []))
}
const judged = figures.flatMap((figure) => verdicts(figure).map((verdict) => ({ figure, verdict })))
const missed = judged.filter(({ verdict }) => !verdict.isHeld)
process.stdout.write(`\n${judged.length - missed.length} of ${judged.length} targets held\n`)
for (const { figure, verdict } of missed)
  process.stdout.write(`  missed: ${figure.what}: ${worded(verdict)}\n`)
for (const name of broken) process.stdout.write(`  ${name} ended without a figure\n`)
if (options.json !== undefined)
  writeFileSync(
    options.json,
    `${JSON.stringify({ machine, figures, verdicts: judged.map(({ figure, verdict }) => ({ figure: figure.id, ...verdict })) }, null, 2)}\n`,
  )
if (options.html !== undefined) writeFileSync(options.html, page(machine, figures))
process.exitCode = broken.length > 0 ? 1 : 0

/** The figures of one script, or null where it failed; what it printed has been shown. */
async function run(name: string): Promise<readonly Figure[] | null> {
  const script = fileURLToPath(new URL(`${name}.ts`, import.meta.url))
  const args = scripts[name]?.[options.quick ? 'quick' : 'whole'] ?? []
  const child = fork(script, [...args], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  let found: readonly Figure[] | null = null
  child.on('message', (message) => (found = (message as { figures: readonly Figure[] }).figures))
  const onSignal = (): void => void child.kill('SIGTERM')
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, onSignal)
  const [status] = (await once(child, 'exit')) as [number | null]
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, onSignal)
  return status === 0 ? found : null
}
