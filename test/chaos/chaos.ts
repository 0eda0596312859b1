// Chaos: hosts, operators and hostile servers at work on a real daemon, while everything is killed, filled, stopped and
// shifted at random from a seed; then nothing may be left, and the record must be the truth.
// Run: npm run chaos -- [--seconds N] [--seed S | --seeds known | --seeds S,S…] [--keep] [--only W,W…] [--plant]
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { asked, secondsOf } from '../support/asked.ts'
import { Undoing } from '../support/broken-off.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot } from '../support/user.ts'
import { probe } from './clock.ts'
import { inTurn, seedsOf } from './in-turn.ts'
import { unproven } from './unproven.ts'

const { values } = asked('chaos', () =>
  parseArgs({
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      keep: { type: 'boolean', default: false },
      plant: { type: 'boolean', default: false },
      seeds: { type: 'string' },
      only: { type: 'string' },
      help: { type: 'boolean', default: false },
      inside: { type: 'boolean', default: false },
    },
  }),
)
/** What one run is told, beside its seed */
const own = [
  fileURLToPath(import.meta.url),
  '--seconds',
  values.seconds,
  ...(values.keep ? ['--keep'] : []),
  ...(values.plant ? ['--plant'] : []),
  ...(values.only === undefined ? [] : ['--only', values.only]),
]
const usage = `npm run chaos -- [--seconds N] [--seed S | --seeds known | --seeds S,S…] [--keep] [--only W,W…] [--plant]

  --seconds N   how long everything befalls the daemon, 60 unless said; the proofs at the end come on top
  --seed S      what the draws come from; any word, a number of its own unless said
  --seeds S,S…  a run for each, one after the other, and at the end a line for each
  --seeds known the same for the seeds that once failed for who runs this: as root, or as an ordinary user
  --keep        copies the folder of a run that broke an invariant before it goes, and says where to
  --only W,W…   lets only those faults befall that have any of these words in their name
  --plant       breaks every invariant on purpose: each has to be found

Status 0: all held, 1: an invariant is broken, 2: nothing is proven, 7: an argument is none, 130: broken off. docs/faults.md says what is tried.
`
if (values.help) {
  process.stdout.write(usage)
  process.exit()
}
const { seeds: several, only = null } = values
const told = { ...values, only, seconds: asked('chaos', () => secondsOf(values.seconds)) }
const seeds = several === undefined ? null : asked('chaos', () => seedsOf(several))
if (only !== null) {
  const { chosenOf } = await import('./coming.ts')
  asked('chaos', () => chosenOf(only))
}
if (seeds !== null) process.exitCode = await eachOf(seeds)
else if (!values.inside) process.exitCode = await reexecute()
else {
  // What only the run itself needs is not loaded by who starts it.
  const { run } = await import('./run.ts')
  process.exitCode = await run(told)
}

/** Runs this once for each seed. */
async function eachOf(seeds: readonly string[]): Promise<number> {
  await using undoing = new Undoing()
  const running = inTurn(seeds, [process.execPath, ...own], { signal: undoing.brokenOff })
  undoing.defer(() => running.then(() => undefined))
  return await running
}

/**
 * Runs this again below a process that adopts every orphan, as root in a mount namespace in which a disk can be made.
 * A signal waits until that one has undone what it did.
 */
async function reexecute(): Promise<number> {
  await using undoing = new Undoing()
  const folder = await undoing.starting(tempDir)
  const reaper = `${folder.path}/reaper`
  execFileSync('cc', ['-static', '-O1', '-o', reaper, probe('reaper')])
  if (isRoot && spawnSync('unshare', ['--mount', 'true']).status !== 0)
    return unproven('this root may not make a mount namespace, without which no daemon of root runs', told)
  const argv = [process.execPath, ...own, '--inside', '--seed', values.seed]
  const [program, args] = isRoot
    ? ['unshare', ['--mount', '--propagation', 'private', reaper, ...argv]]
    : [reaper, argv]
  const child = spawn(program, args, { stdio: 'inherit' })
  const exited = once(child, 'exit') as Promise<[number | null]>
  undoing.defer(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const [code] = await exited
  return code ?? 1
}
