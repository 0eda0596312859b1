// A run of chaos: the phases one after the other, the proofs at its end, and the verdict.
import { Undoing } from '../support/broken-off.ts'
import { isRoot } from '../support/user.ts'
import { Account } from './account.ts'
import { expectNothing, filesOf } from './census.ts'
import { Chance } from './chance.ts'
import { Coming } from './coming.ts'
import { containersOf, EngineLost } from './containers.ts'
import { expectAlone, journalOf, judge } from './evidence.ts'
import { Ledger } from './ledger.ts'
import { calm, expectRecovery, type Play, siege, storm } from './phases.ts'
import { inVainMs, plantLeft, plantReloads, plantRival, plantTold } from './plants.ts'
import { expectUnwritten } from './secrets.ts'
import { extras, untouched, witnessed } from './servers.ts'
import { Stage } from './stage.ts'
import { unproven } from './unproven.ts'
import { verdict } from './verdict.ts'

/** What a run is told. */
export interface Told {
  readonly seed: string
  readonly seconds: number
  readonly plant: boolean
  readonly keep: boolean
  /** Words with commas between, of which every fault has some in its name; null for all of them */
  readonly only: string | null
}

/** One run, from its first daemon to its verdict; the exit status. */
export async function run(told: Told): Promise<number> {
  const { seconds } = told
  await using undoing = new Undoing()
  const account = new Account(undoing.brokenOff)
  account.say(`seed ${told.seed}, ${seconds} s, as ${isRoot ? 'root' : 'an ordinary user'}`)
  const say = (line: string): void => account.say(line)
  const daemons = new Set<string>()
  const containers = await undoing.starting(() => containersOf(daemons, say))
  if (containers !== null) say('with containers')
  const engine = containers?.environment ?? null
  const stage = await undoing.starting(() => Stage.open({ account, seconds, daemons, engine }))
  const chance = new Chance(told.seed)
  const ledger = new Ledger(account)
  const servers = witnessed.filter((name) => containers !== null || name !== 'boxed')
  const coming = new Coming(told.only)
  const play: Play = { stage, ledger, servers, containers, chance, undoing, coming }
  try {
    // What a daemon leaves that did nothing is what one may leave that did all of this.
    await stage.start()
    await stage.end()
    const before = filesOf(stage)
    await stage.start()
    await storm(play, seconds * 500)
    await expectRecovery(play)
    const level = await calm(play, seconds * 250, told.plant)
    await siege(play, seconds * 250, level, told.plant)
    await stage.end()
    if (containers !== null && !told.plant) await sweep(stage)
    using _ = told.plant ? await planted(play) : null
    const records = journalOf(stage)
    // One that was killed before it answered is known from the journal alone.
    for (const { daemon } of records ?? []) daemons.add(daemon)
    await expectNothing(stage, before, containers, told.plant ? inVainMs : undefined)
    expectUnwritten(account, [stage.at.runtimeDir, stage.at.stateDir, stage.scratch])
    if (records !== null) {
      expectAlone(account, told.plant ? [...records.slice(-1), ...records] : records)
      judge(stage, records, ledger, [...servers, untouched, ...extras])
    }
  } catch (error) {
    if (error instanceof EngineLost) return unproven(error.message, told)
    account.breaks(
      'recovers',
      `the run could not go on: ${error instanceof Error ? error.stack : String(error)}`,
    )
  }
  account.say('over')
  if (account.broken.length > 0 && told.keep) account.print(`kept: ${await stage.keep()}`)
  account.print(account.summary())
  const { lines, status } = verdict(account.broken, coming, told)
  for (const line of lines) account.print(line)
  return status
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

/** What an engine was too slow for, the next daemon removes; with plants that is the one that they are given. */
async function sweep(stage: Stage): Promise<void> {
  await stage.start()
  await stage.end()
}
