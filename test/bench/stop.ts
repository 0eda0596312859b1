// How long a daemon takes to end with servers that ignore EOF and SIGTERM, and what is left; and what is left of the launches of one
// that is killed in the midst of them. Run after npm run build: node test/bench/stop.ts [servers] [rounds] [kills]
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { cgroupsOf, descendantsOf, isAlive, processesWith } from '../support/leaks.ts'
import { Undoing } from '../support/broken-off.ts'
import { counts } from './counts.ts'
import { type Arm, boundBy, publish } from './figures.ts'
import { leftByPeers } from './stop-peers.ts'
import { heard } from './until.ts'

const { servers, rounds, kills } = counts({ servers: 50, rounds: 3, kills: 15 })
const ladder = { eof_ms: 500, term_ms: 1000 }
const names = Array.from({ length: servers }, (_, n) => `stubborn${n}`)
/** In the arguments of every server, so that one can be found of which nobody has seen the start */
const token = `bench-stop-${process.pid}`
const server = fixture('ignore-sigterm', { args: ['/app/ignore-sigterm.mjs', token], stop: ladder })
const config = configOf(Object.fromEntries(names.map((name) => [name, server])))
/** Launches at once of a daemon that is killed, and the longest that it is let work on them, ms */
const [launches, window] = [20, 600]

const bareLadder = 'the ladder alone'

await using stack = new Undoing()
/** When what is left is counted, ms */
const restMs = 1000
const taken: number[] = []
const left: number[] = []
const bare: number[] = []
for (let round = 0; round < rounds; round++) {
  const running = await stack.starting(() => daemon(config))
  for (const name of names) await running.client.call('servers/start', { server: name })
  const seen = descendantsOf(running.process.pid ?? 0).map(({ pid }) => pid)
  const exit = once(running.process, 'exit')
  const began = performance.now()
  running.process.kill('SIGTERM')
  await exit
  taken.push((performance.now() - began) / 1000)
  // Its guard sees the daemon out, and ends right behind it.
  await setTimeout(restMs)
  left.push(leftOf(running, seen))
  bare.push(await endBare())
}
const stops: readonly Arm[] = [
  { name: bareLadder, kind: 'bound', values: bare },
  { name: 'sallyport', kind: 'ours', values: taken },
]
const killed: number[] = []
for (let kill = 0; kill < kills; kill++) {
  const running = await stack.starting(() => daemon(config))
  for (const name of names.slice(0, launches))
    running.client.call('servers/start', { server: name }).catch(() => undefined) // its daemon is killed
  await setTimeout(((kill + 1) / kills) * window)
  const seen = descendantsOf(running.process.pid ?? 0).map(({ pid }) => pid)
  const exit = once(running.process, 'exit')
  running.process.kill('SIGKILL')
  await exit
  await setTimeout(restMs)
  killed.push(leftOf(running, seen))
}
publish([
  {
    id: 'stop',
    what: `the daemon’s end with ${servers} servers that ignore EOF and SIGTERM`,
    unit: 's',
    arms: stops,
    judged: [
      {
        arm: 'sallyport',
        by: 'value',
        target: (ladder.eof_ms + ladder.term_ms + 500) / 1000,
        bounds: [boundBy('value', stops, bareLadder)],
      },
    ],
    note: `The ladder is ${ladder.eof_ms} ms for EOF and ${ladder.term_ms} ms for SIGTERM, and the target half a second more. ${bareLadder}: the same for processes with nothing around them.`,
  },
  {
    id: 'left',
    what: 'processes and control groups left 1 s after it, in all rounds',
    unit: 'left',
    arms: [{ name: 'sallyport', kind: 'ours', values: [sum(left)] }],
    judged: [{ arm: 'sallyport', by: 'value', target: 0 }],
  },
  {
    id: 'killed',
    what: `processes and control groups left 1 s after a daemon is killed with SIGKILL, in ${kills} kills`,
    unit: 'left',
    arms: [{ name: 'sallyport', kind: 'ours', values: [sum(killed)] }, ...(await leftByPeers(stack, kills))],
    judged: [{ arm: 'sallyport', by: 'value', target: 0 }],
    note: `Each in the midst of ${Math.min(launches, servers)} launches, from ${Math.round(window / kills)} to ${window} ms after they were asked for. The others: a program that has started as many sandboxes is killed so. What is left is ended.`,
  },
])

/** As many processes that ignore both, ended by the same ladder; how long it took, s. */
async function endBare(): Promise<number> {
  const ignoring = 'trap "" TERM; echo; while :; do sleep 1; done'
  const all = names.map(() =>
    // By both arguments they are found where this process is killed
    spawn('sh', ['-c', ignoring, token, `${tmpdir()}/`], {
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    }),
  )
  const end = (signal: NodeJS.Signals): void => all.forEach((it) => endGroup(it, signal))
  stack.defer(() => end('SIGKILL'))
  await Promise.all(all.map(({ stdout }) => heard(stdout, 'data')))
  const exits = Promise.all(all.map((it) => once(it, 'exit')))
  const began = performance.now()
  for (const { stdin } of all) stdin.end()
  await setTimeout(ladder.eof_ms)
  end('SIGTERM')
  await setTimeout(ladder.term_ms)
  end('SIGKILL')
  await exits
  return (performance.now() - began) / 1000
}

/** Signals the group that a process leads, for as long as it does. */
function endGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // it has just ended
  }
}

/** What is still there of a daemon: processes that were seen below it or are servers of this run, its control groups, its guard. */
function leftOf({ client, folder }: TestDaemon, seen: readonly number[]): number {
  const alive = new Set([...processesWith(token), ...processesWith(`${folder}/`), ...seen.filter(isAlive)])
  return alive.size + cgroupsOf(client.hello.daemon).length
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0)
}
