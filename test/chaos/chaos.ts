// Chaos: hosts, operators and hostile servers at work on a real daemon, while everything is killed, filled, stopped and
// shifted at random from a seed; then nothing may be left, and the record must be the truth.
// Run: npm run chaos -- [--seconds N] [--seed S | --seeds known | --seeds S,S…] [--keep] [--only W,W…] [--plant]
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Undoing } from '../support/broken-off.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot } from '../support/user.ts'
import { Account, invariants } from './account.ts'
import { expectNothing, filesOf } from './census.ts'
import { Chance } from './chance.ts'
import { probe } from './clock.ts'
import { containersOf, EngineLost } from './containers.ts'
import { expectAlone, journalOf, judge } from './evidence.ts'
import { inTurn, seedsOf } from './in-turn.ts'
import { Ledger } from './ledger.ts'
import { calm, expectRecovery, type Play, siege, storm } from './phases.ts'
import { inVainMs, plantLeft, plantReloads, plantRival, plantTold } from './plants.ts'
import { expectUnwritten } from './secrets.ts'
import { extras, untouched, witnessed } from './servers.ts'
import { Stage } from './stage.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    keep: { type: 'boolean', default: false },
    plant: { type: 'boolean', default: false },
    seeds: { type: 'string' },
    only: { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
    inside: { type: 'boolean', default: false },
  },
})
/** What one run is told, beside its seed */
const own = [
  fileURLToPath(import.meta.url),
  '--seconds',
  values.seconds,
  ...(values.keep ? ['--keep'] : []),
  ...(values.plant ? ['--plant'] : []),
  ...(values.only === '' ? [] : ['--only', values.only]),
]
const usage = `npm run chaos -- [--seconds N] [--seed S | --seeds known | --seeds S,S…] [--keep] [--only W,W…] [--plant]

  --seconds N   how long everything befalls the daemon, 60 unless said; the proofs at the end come on top
  --seed S      what the draws come from; any word, a number of its own unless said
  --seeds S,S…  a run for each, one after the other, and at the end a line for each
  --seeds known the same for the seeds that once failed for who runs this: as root, or as an ordinary user
  --keep        copies the folder of a run that broke an invariant before it goes, and says where to
  --only W,W…   lets only those faults befall that have any of these words in their name
  --plant       breaks every invariant on purpose: each has to be found

Status 0: all held, 1: an invariant is broken, 2: nothing is proven, 130: broken off. docs/faults.md says what is tried.
`
const seconds = Number(values.seconds)
if (!Number.isFinite(seconds) || seconds < 1)
  throw new Error(`--seconds ${values.seconds} is not a number above 0`)
if (values.help) process.stdout.write(usage)
else if (values.seeds !== undefined) process.exitCode = await eachOf(seedsOf(values.seeds))
else process.exitCode = values.inside ? await run() : await reexecute()

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
    return unproven('this root may not make a mount namespace, without which no daemon of root runs')
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

async function run(): Promise<number> {
  await using undoing = new Undoing()
  const account = new Account(undoing.brokenOff)
  account.say(`seed ${values.seed}, ${seconds} s, as ${isRoot ? 'root' : 'an ordinary user'}`)
  const say = (line: string): void => account.say(line)
  const daemons = new Set<string>()
  const containers = await undoing.starting(() => containersOf(daemons, say))
  if (containers !== null) say('with containers')
  const engine = containers?.environment ?? null
  const stage = await undoing.starting(() => Stage.open({ account, seconds, daemons, engine }))
  const chance = new Chance(values.seed)
  const ledger = new Ledger(account)
  const servers = witnessed.filter((name) => containers !== null || name !== 'boxed')
  const play: Play = { stage, ledger, servers, containers, chance, undoing, only: values.only }
  try {
    // What a daemon leaves that did nothing is what one may leave that did all of this.
    await stage.start()
    await stage.end()
    const before = filesOf(stage)
    await stage.start()
    await storm(play, seconds * 500)
    await expectRecovery(play)
    const level = await calm(play, seconds * 250, values.plant)
    await siege(play, seconds * 250, level, values.plant)
    await stage.end()
    if (containers !== null) await sweep(stage)
    using _ = values.plant ? await planted(play) : null
    const records = journalOf(stage)
    // One that was killed before it answered is known from the journal alone.
    for (const { daemon } of records ?? []) daemons.add(daemon)
    await expectNothing(stage, before, containers, values.plant ? inVainMs : undefined)
    expectUnwritten(account, [stage.at.runtimeDir, stage.at.stateDir, stage.scratch])
    if (records !== null) {
      expectAlone(account, values.plant ? [...records.slice(-1), ...records] : records)
      judge(stage, records, ledger, [...servers, untouched, ...extras])
    }
  } catch (error) {
    if (error instanceof EngineLost) return unproven(error.message)
    account.breaks(
      'recovers',
      `the run could not go on: ${error instanceof Error ? error.stack : String(error)}`,
    )
  }
  account.say('over')
  if (account.broken.length > 0 && values.keep) account.print(`kept: ${await stage.keep()}`)
  return verdict(account)
}

/** Says that the machine, and not the daemon, ended the run; the exit status. */
function unproven(why: string): number {
  process.stdout.write(
    `nothing is proven: ${why}; again with --seed ${values.seed} --seconds ${values.seconds}\n`,
  )
  return 2
}

/** What must never be, brought about on purpose. */
async function planted(play: Play): Promise<Disposable> {
  const { stage, ledger, containers } = play
  await stage.start()
  await expectRecovery({ ...play, servers: ['planted'] }, 100)
  await plantReloads(play)
  await plantRival(stage)
  await plantTold(stage)
  return plantLeft(stage, ledger, { daemon: [...stage.daemons].at(-1) ?? '', containers })
}

/** What an engine was too slow for, the next daemon removes. */
async function sweep(stage: Stage): Promise<void> {
  await stage.start()
  await stage.end()
}

/** Says what was counted and what is broken; the exit status. */
function verdict(account: Account): number {
  account.print(account.summary())
  const names = [...new Set(account.broken.map(({ invariant }) => invariant))]
  for (const name of names) account.print(`BROKEN ${name}: ${invariants[name]}`)
  account.print(
    names.length === 0
      ? `all ${Object.keys(invariants).length} invariants held; seed ${values.seed}`
      : `${names.length} invariants broken; again with --seed ${values.seed} --seconds ${values.seconds}`,
  )
  return names.length === 0 ? 0 : 1
}
