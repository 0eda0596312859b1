// Chaos: hosts, operators and hostile servers at work on a real daemon, while everything is killed, filled, stopped and
// shifted at random from a seed; then nothing may be left, and the record must be the truth.
// Run: npm run chaos -- [--seconds N] [--seed S] [--keep] [--plant]
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { SallyportError } from '../../src/errors.ts'
import { eventually } from '../support/eventually.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot } from '../support/user.ts'
import { Account, invariants } from './account.ts'
import { daemonsOf, expectNothing, filesOf } from './census.ts'
import { Chance } from './chance.ts'
import { type Containers, containersOf } from './containers.ts'
import { judge } from './evidence.ts'
import { misfortune } from './faults.ts'
import { controlHost, sessionHost, type World } from './hosts.ts'
import { Ledger } from './ledger.ts'
import { operator, releaseAll } from './operator.ts'
import { plantLeft, plantMore, plantTold } from './plants.ts'
import { atRest } from './rest.ts'
import { witnessed } from './servers.ts'
import { probe, Stage } from './stage.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    keep: { type: 'boolean', default: false },
    plant: { type: 'boolean', default: false },
    inside: { type: 'boolean', default: false },
  },
})
const seconds = Number(values.seconds)
if (!Number.isFinite(seconds) || seconds < 1)
  throw new Error(`--seconds ${values.seconds} is not a number above 0`)
process.exitCode = values.inside ? await run() : await reexecute()

/** Runs this again below a process that adopts every orphan, as root in a mount namespace in which a disk can be made. */
async function reexecute(): Promise<number> {
  await using folder = await tempDir()
  const reaper = `${folder.path}/reaper`
  execFileSync('cc', ['-static', '-O1', '-o', reaper, probe('reaper')])
  const namespace = isRoot ? ['unshare', '--mount', '--propagation', 'private'] : []
  const own = [fileURLToPath(import.meta.url), '--inside', '--seconds', values.seconds, '--seed', values.seed]
  const [program = '', ...args] = [
    ...namespace,
    reaper,
    process.execPath,
    ...own,
    ...(values.keep ? ['--keep'] : []),
    ...(values.plant ? ['--plant'] : []),
  ]
  const child = spawn(program, args, { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill('SIGTERM'))
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? 1
}

async function run(): Promise<number> {
  const account = new Account()
  account.say(`seed ${values.seed}, ${seconds} s, as ${isRoot ? 'root' : 'an ordinary user'}`)
  let daemons: readonly string[] = []
  await using containers = await containersOf(() => daemons)
  account.say(containers === null ? 'without containers: no engine can be started' : 'with containers')
  const stage = await Stage.open({ account, engine: containers?.environment ?? null })
  const seen = () => (daemons = daemonsOf(stage))
  const chance = new Chance(values.seed)
  const ledger = new Ledger(account)
  const servers = witnessed.filter((name) => containers !== null || name !== 'boxed')
  try {
    // What a daemon leaves that did nothing is what one may leave that did all of this.
    await stage.start()
    await stage.end()
    const before = filesOf(stage)
    await stage.start()
    await storm({ stage, ledger, servers, containers, chance, seen, ms: seconds * 700 })
    await expectRecovery(stage, ledger, servers)
    await calm({ stage, ledger, servers, chance, ms: seconds * 300 })
    await stage.end()
    if (containers !== null) await sweep(stage)
    using _ = values.plant ? await planted(stage, ledger, containers) : null
    seen()
    await expectNothing(stage, before, containers)
    judge(stage, ledger, servers)
  } catch (error) {
    account.breaks(
      'recovers',
      `the run could not go on: ${error instanceof Error ? error.stack : String(error)}`,
    )
  } finally {
    account.say('over')
    process.stdout.write(`${account.summary()}\n`)
    if (account.broken.length > 0 && values.keep) process.stdout.write(`kept: ${stage.at.folder}\n`)
    else await stage[Symbol.asyncDispose]()
  }
  const names = [...new Set(account.broken.map(({ invariant }) => invariant))]
  for (const name of names) process.stdout.write(`BROKEN ${name}: ${invariants[name]}\n`)
  process.stdout.write(
    names.length === 0
      ? `all ${Object.keys(invariants).length} invariants held; seed ${values.seed}\n`
      : `${names.length} invariants broken; again with --seed ${values.seed} --seconds ${values.seconds}\n`,
  )
  return names.length === 0 ? 0 : 1
}

/** What must never be, brought about on purpose. */
async function planted(stage: Stage, ledger: Ledger, containers: Containers | null): Promise<Disposable> {
  await stage.start()
  await expectRecovery(stage, ledger, ['planted'], 100)
  await plantTold(stage)
  return plantLeft(stage, ledger, { daemon: daemonsOf(stage).at(-1) ?? '', containers })
}

/** What an engine was too slow for, the next daemon removes. */
async function sweep(stage: Stage): Promise<void> {
  await stage.start()
  await stage.end()
}

interface Storm {
  readonly stage: Stage
  readonly ledger: Ledger
  readonly servers: readonly string[]
  readonly containers: Containers | null
  readonly chance: Chance
  readonly seen: () => unknown
  readonly ms: number
}

/** Everybody at work, and everything that can befall them. */
async function storm({ chance, containers, ms, seen, ...rest }: Storm): Promise<void> {
  const over = new AbortController()
  const world: World = { ...rest, signal: over.signal }
  const noting = setInterval(seen, 500)
  await atWork(rest.stage, over, ms, {
    ...hostsOf(world, chance, 3),
    operator: operator(world, chance.of('operator')),
    misfortune: misfortune({ ...world, chance: chance.of('misfortune'), containers }),
  })
  clearInterval(noting)
}

/** So many hosts of either kind. */
function hostsOf(world: World, chance: Chance, count: number): Record<string, Promise<void>> {
  const numbers = Array.from({ length: count }, (_, number) => number)
  return Object.fromEntries([
    ...numbers.map((n) => [`host ${n}`, controlHost(world, chance.of(`host ${n}`))] as const),
    ...numbers.map((n) => [`session ${n}`, sessionHost(world, chance.of(`session ${n}`))] as const),
  ])
}

/** Lets them work for so long, and then bring what they are at to its end. */
async function atWork(
  { account }: Stage,
  over: AbortController,
  ms: number,
  workers: Readonly<Record<string, Promise<void>>>,
): Promise<void> {
  const busy = new Set(Object.keys(workers))
  const all = Promise.all(
    Object.entries(workers).map(([name, work]) => work.finally(() => busy.delete(name))),
  )
  await Promise.race([all, delay(ms)])
  over.abort()
  const late = delay(120_000, 'late', { ref: false })
  if ((await Promise.race([all, late])) === 'late')
    account.breaks('answers', `two minutes after the end these still wait: ${[...busy].join(', ')}`)
}

/** Once every fault is over, each server is called again within `ms`. */
async function expectRecovery(
  stage: Stage,
  ledger: Ledger,
  servers: readonly string[],
  ms = 20_000,
): Promise<void> {
  if (stage.pid === null) await stage.start()
  await using client = await stage.operator()
  await releaseAll(client)
  for (const server of servers.filter((name) => name !== 'asked'))
    try {
      await eventually(async () => {
        const token = ledger.open(server, 'honest')
        const args = { token, way: 'honest' }
        try {
          await client.call('tools/call', { server, tool: 'effect', arguments: args })
        } catch (error) {
          // One that stopped itself is up and never answers: it is for its operator to end.
          if (error instanceof SallyportError && error.code === 'ERR_CALL_TIMEOUT')
            await client.call('servers/stop', { server })
          throw error
        }
        ledger.close(token, 'done')
        return true
      }, ms)
    } catch (error) {
      stage.account.breaks('recovers', `${server}: ${String((error as Error).cause)}`)
    }
}

interface Calm {
  readonly stage: Stage
  readonly ledger: Ledger
  readonly servers: readonly string[]
  readonly chance: Chance
  readonly ms: number
}

/** The same hosts on a daemon that nothing befalls, in rounds: after each it must hold what it held after the first. */
async function calm({ stage, ms, chance, ...rest }: Calm): Promise<void> {
  await stage.end()
  await stage.start()
  const rounds: Awaited<ReturnType<typeof atRest>>[] = []
  for (let round = 0; round < 4; round++) {
    const over = new AbortController()
    const world: World = { ...rest, stage, signal: over.signal }
    await atWork(stage, over, ms / 4, hostsOf(world, chance.of(`calm ${round}`), 2))
    if (values.plant && round === 3) await plantMore(stage)
    rounds.push(await atRest(stage))
  }
  const [, first, ...others] = rounds
  stage.account.say(
    `at rest: ${rounds.map(({ descriptors, livingMib, residentMib }) => `${descriptors.length} fds, ${livingMib.toFixed(1)} MiB alive, ${residentMib} resident`).join('; ')}`,
  )
  const last = others.at(-1)
  if (first === undefined || last === undefined) return
  if (last.descriptors.length > first.descriptors.length + 3)
    stage.account.breaks(
      'flat',
      `descriptors became ${tally(last.descriptors)}; they were ${tally(first.descriptors)}`,
    )
  // What is resident depends on when V8 last thought of collecting; what is alive then, on us alone.
  if (last.livingMib > first.livingMib + 10)
    stage.account.breaks(
      'flat',
      `${first.livingMib.toFixed(1)} MiB alive became ${last.livingMib.toFixed(1)}`,
    )
}

function tally(names: readonly string[]): string {
  return [...Map.groupBy(names, (name) => name)].map(([name, { length }]) => `${name} ${length}`).join(', ')
}
