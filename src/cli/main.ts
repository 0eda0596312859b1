#!/usr/bin/env node
// The command line: finds the verb, loads that verb alone, and turns every failure into one line and an exit status.
import { existsSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const oldest = [22, 12] as const

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) process.exit(await onNewerNode())
// Said here and not by what trips over it: no error of ours could be made then, nor one of most packages.
if (Object.isFrozen(Error)) {
  process.stderr.write(
    'sallyport: cannot run on what --frozen-intrinsics makes of Node; take that out of NODE_OPTIONS, or of the command (ERR_USAGE)\n',
  )
  process.exit(7)
}

// Behind the check: what an old Node can't parse must not be loaded before it was told so.
const { hearEarly } = await import('./interruption.ts')
hearEarly(process.argv.slice(2))
const { main } = await import('./program.ts')
await main(process.argv.slice(2))

// The package may bring a Node of its own (it does in its repository).
async function onNewerNode(): Promise<number> {
  const own = fileURLToPath(new URL('../../node_modules/node/bin/node', import.meta.url))
  if (existsSync(own)) {
    const child = spawn(own, process.argv.slice(1), { stdio: 'inherit' })
    // Whoever ends us means what runs; a terminal says SIGINT to both
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
    process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'))
    const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
    const [status, signal] = await ended.catch((error: unknown) => [unstarted(own, error), null] as const)
    if (signal !== null) {
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    }
    return status ?? 1
  }
  process.stderr.write(
    `sallyport: needs Node ${oldest.join('.')} or newer, this is ${process.versions.node}; install a newer Node\n`,
  )
  return 7
}

// Where a limit on processes or memory leaves no room for a second one. The status is that of ERR_SHORTAGE.
function unstarted(own: string, error: unknown): number {
  const why = error instanceof Error ? error.message : String(error)
  process.stderr.write(
    `sallyport: ${own} cannot be started (${why}); see that there are memory and processes for it, or use Node ${oldest.join('.')} or newer yourself (ERR_SHORTAGE)\n`,
  )
  return 1
}
