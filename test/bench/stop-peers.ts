// What is left of sandboxes of others where the program that has started them is killed with SIGKILL.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { Undoing } from '../support/broken-off.ts'
import { descendantsOf, isAlive, processesWith } from '../support/leaks.ts'
import { tempDir } from '../support/temp-dir.ts'
import { bareSandbox } from './bubblewrap.ts'
import type { Command } from './containers.ts'
import type { Arm } from './figures.ts'
import { nameOf } from './peers.ts'
import { endNow, srtCommand } from './starts.ts'
import { until } from './until.ts'

/** So many sandboxes at once, the longest that they are let start, ms, and how often */
interface Storm {
  readonly launches: number
  readonly windowMs: number
  readonly kills: number
}

/** Starts its last argument so often as the first says, each a command as JSON, and waits. */
const starter = `const [count, command] = process.argv.slice(1); const [program, ...args] = JSON.parse(command)
for (let n = 0; n < count; n++) require('node:child_process').spawn(program, args, { stdio: 'ignore' })
process.stdout.write('started'); setInterval(() => undefined, 1e6)`

/** Arms for bubblewrap alone and srt, each with what was left in all its kills. */
export async function leftByPeers(stack: Undoing, kills: number): Promise<readonly Arm[]> {
  const folder = await stack.starting(() => tempDir())
  const token = `bench-left-${process.pid}`
  const sleep = ['sh', '-c', 'while :; do sleep 1; done', token] as const
  const bubblewrap = { launches: 20, windowMs: 600, kills }
  // Each takes half a second of a processor until it is up
  const srts = { launches: 5, windowMs: 3000, kills: Math.ceil(kills / 3) }
  const srt = await srtCommand(folder.path)
  const named = (name: string, { launches, kills: times }: Storm): string =>
    `${name}, ${times} kills of ${launches}`
  const alone = await leftOf(['bwrap', ...bareSandbox, ...sleep], bubblewrap, token, folder.path)
  return [
    { name: named('bubblewrap alone', bubblewrap), kind: 'peer', values: [alone] },
    'absent' in srt
      ? { name: nameOf('srt'), kind: 'peer', values: [], absent: srt.absent }
      : {
          name: named(nameOf('srt'), srts),
          kind: 'peer',
          values: [await leftOf(srt(`-e 'setInterval(() => {}, 1e6)' ${token}`), srts, token, folder.path)],
        },
  ]
}

async function leftOf(command: Command, storm: Storm, token: string, folder: string): Promise<number> {
  const { launches, windowMs, kills } = storm
  let left = 0
  for (let kill = 0; kill < kills; kill++) {
    const args = ['-e', starter, String(launches), JSON.stringify(command)]
    const env = { ...process.env, TMPDIR: folder }
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'], env })
    const exit = once(child, 'exit')
    await once(child.stdout, 'data')
    await setTimeout(((kill + 1) / kills) * windowMs)
    const seen = descendantsOf(child.pid ?? 0).map(({ pid }) => pid)
    child.kill('SIGKILL')
    await exit
    await setTimeout(1000)
    const alive = (): readonly number[] => [
      ...new Set([...processesWith(token), ...processesWith(`${folder}/`), ...seen.filter(isAlive)]),
    ]
    left += alive().length
    await until('what was left has ended', () => endAll(alive()))
  }
  return left
}

/** Ends them with what they have started since, and says whether there were none: one may start another meanwhile. */
function endAll(pids: readonly number[]): boolean {
  for (const pid of pids) for (const it of [...descendantsOf(pid), { pid }]) endNow(it.pid)
  return pids.length === 0
}
