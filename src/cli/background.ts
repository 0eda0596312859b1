// A daemon that outlives its starter: started apart, with the same environment, and awaited until one answers, ours or another's.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, fstatSync, readSync, writeSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from '../client/client.ts'
import type { Host } from '../config/host.ts'
import { type Named, onNamed } from '../config/named-file.ts'
import { isErrorCode, SallyportError } from '../errors.ts'
import type { Hello } from '../rpc/protocol.ts'
import { prepareStateDir } from '../rpc/runtime-dir.ts'
import { openLog } from './daemon-log.ts'
import { hint, visible } from './output.ts'
import { type OwnScope, ownScope } from './own-scope.ts'

export interface BackgroundOptions {
  readonly host: Host
  readonly runtimeDir: string
  readonly stateDir: string
  readonly config: string | undefined
}

/**
 * A start takes half a second at rest, and a dozen of them at once, on a machine that has just come up, many; ms. More than a daemon
 * waits for its configuration, which it says then.
 */
const startMs = 40_000

/**
 * Returns once a daemon answers on the runtime directory, and says so of one that did before. Where several start at once, one
 * wins and all return. Throws the daemon's own complaint where it can't run, and ERR_DAEMON_UNAVAILABLE where none answers
 * within 40 s: then its own is ended.
 */
export async function startInBackground(options: BackgroundOptions): Promise<void> {
  const { runtimeDir, stateDir } = options
  const former = await answering(runtimeDir)
  if (former !== null)
    return hint(
      `daemon ${former.pid} already serves ${runtimeDir}; sallyport reload has it read its file again`,
    )
  await prepareStateDir(stateDir)
  const path = join(stateDir, 'daemon.log')
  const mend = 'move what is there, or choose another folder with --state'
  const named: Named = { path, access: 'write', code: 'ERR_RUNTIME_UNSAFE', mend }
  const log = await onNamed(named, () => openLog(path))
  const from = fstatSync(log).size
  const end = performance.now() + startMs
  const scope = await ownScope(options.host.env)
  const child = start(options, scope, log)
  try {
    for (; performance.now() < end; await delay(20)) {
      if ((await answering(runtimeDir)) !== null) return
      const hasEnded = child.exitCode !== null || child.signalCode !== null
      if (hasEnded && !isAnother(lastWords(log, from), runtimeDir)) break
    }
    // One that hangs, as a Node that found no thread, would hang for ever, and each further start would leave another.
    if (child.pid !== undefined) child.kill()
    const said = lastWords(log, from)
    // Where the log takes nothing, what it lacks is not that the daemon had nothing to say.
    if (said === '') await onNamed(named, () => writeSync(log, 'it said nothing\n'))
    throw failed(said, stateDir)
  } finally {
    child.unref()
    closeSync(log)
  }
}

function start(
  { runtimeDir, stateDir, config }: BackgroundOptions,
  { words, env }: OwnScope,
  log: number,
): ChildProcess {
  const main = fileURLToPath(new URL('./main.js', import.meta.url))
  const serve = [process.execPath, main, 'serve', '--runtime', runtimeDir, '--state', stateDir]
  const [file = process.execPath, ...args] = [...words, ...serve]
  return spawn(file, config === undefined ? args : [...args, '--config', resolve(config)], {
    detached: true,
    stdio: ['ignore', log, log],
    cwd: '/',
    env,
  })
}

/** Null where no daemon answers. */
async function answering(runtimeDir: string): Promise<Hello | null> {
  try {
    await using client = await connect({ at: { runtimeDir } })
    return client.hello
  } catch (error) {
    if (error instanceof SallyportError && error.code === 'ERR_DAEMON_UNAVAILABLE') return null
    throw error
  }
}

// What this start has written to the log: its own complaint, or whatever came last.
function lastWords(log: number, from: number): string {
  const buffer = Buffer.alloc(8192)
  const length = readSync(log, buffer, 0, buffer.length, from)
  const lines = buffer.toString('utf8', 0, length).trimEnd().split('\n')
  return (
    lines.findLast((line) => line.startsWith('sallyport: '))?.slice('sallyport: '.length) ??
    lines.at(-1) ??
    ''
  )
}

// Whether another daemon holds the lock there, and so is about to answer. One that only keeps the same state answers elsewhere.
const isAnother = (said: string, runtimeDir: string): boolean =>
  said.includes('(ERR_DAEMON_RUNNING)') &&
  [';', ','].some((end) => said.includes(`serves ${visible(runtimeDir)}${end}`))

// Its own complaint keeps its own code, and so the exit status that `serve` would have had.
function failed(said: string, stateDir: string): SallyportError {
  const log = join(stateDir, 'daemon.log')
  const [, complaint, code] = /^(.*) \((ERR_\w+)\)$/s.exec(said) ?? []
  if (complaint !== undefined && isErrorCode(code)) return new SallyportError(code, complaint, { log })
  const why = said === '' ? 'it said nothing, as where memory or processes run out' : said
  return new SallyportError('ERR_DAEMON_UNAVAILABLE', `the daemon did not start: ${why}; its log is ${log}`, {
    log,
  })
}
