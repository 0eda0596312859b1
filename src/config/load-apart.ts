// A configuration read in a process of its own. What reads and judges files is megabytes of code, and what it makes of them is more: a
// daemon needs both for a moment, and what V8 grew by it keeps. Calls go on meanwhile.
//
//   daemon                            child, which the kernel ends with the daemon
//   options, variables      ->        as its arguments and environment
//                           <-        length, then build, settings or what was refused
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { deserialize } from 'node:v8'
import { SallyportError } from '../errors.ts'
import { build } from '../lib/build.ts'
import { unlessAborted } from '../lib/deadline.ts'
import { ReplacedError } from '../lib/late.ts'
import { errnoOf } from '../lib/missing.ts'
import type { Settings } from '../schema/settings.ts'
import { freeze } from './freeze.ts'
import type { LoadOptions } from './load.ts'

/** What the child says, in V8's own notation: settings have maps. */
export interface Said {
  readonly build: string
  /** Settings, or what `toRpc` makes of the refusal */
  readonly loaded: { readonly settings: Settings } | { readonly refused: unknown }
}

/** What a process of its own takes. */
export interface Apart {
  /** The binary that ties it to this one */
  readonly initPath: string
  readonly signal?: AbortSignal
}

/** Those of the length of what the child says, before it */
export const lengthBytes = 4

/**
 * What a disk that hangs is given, and a Node that found no thread and waits for it for ever, ms: less than a start in the background
 * waits for a daemon, or nobody would be told why there is none.
 */
const patienceMs = 30_000
const file = fileURLToPath(new URL(`./load-child${extname(import.meta.url)}`, import.meta.url))

/**
 * As `loadSettings`, and leaves nothing in memory but the settings. Rejects also where what is on disk is another build than
 * this one, whose settings may mean something else, where nothing was read within half a minute, and with the signal's reason as
 * soon as that aborts: nobody is left reading then, nor where this process is killed.
 */
export async function loadSettingsApart(
  options: LoadOptions,
  { initPath, signal = new AbortController().signal }: Apart,
): Promise<Settings> {
  signal.throwIfAborted()
  const { env, ...others } = options
  const command = [process.execPath, file, JSON.stringify(others)]
  const child: ChildProcess = spawn(initPath, ['tied', `${process.pid}`, ...command], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
  })
  const overdue = setTimeout(() => child.kill('SIGKILL'), patienceMs)
  const { promise: failed, reject } = Promise.withResolvers<never>()
  child.once('error', (error) => reject(errnoOf(error) === 'ENOENT' ? new ReplacedError(error) : error))
  // Where there is no descriptor for it, Node has made no output.
  const heard = child.stdout ?? null
  const said = heard === null ? failed : Promise.race([failed, saidBy(child, heard)])
  const { loaded } = await unlessAborted(said, signal).finally(() => {
    clearTimeout(overdue)
    // Node's `kill` of what has no pid would reach our own process group.
    if (signal.aborted && child.pid !== undefined) child.kill('SIGKILL')
  })
  if ('refused' in loaded) throw SallyportError.fromRpc(loaded.refused)
  return freeze(loaded.settings)
}

// The whole of what it says is enough: a process can hang as it exits.
async function saidBy(child: ChildProcess, stdout: Readable): Promise<Said> {
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  ended.catch(() => undefined) // told where it is waited for, if it is
  let heard: Buffer = Buffer.alloc(0)
  for await (const chunk of stdout) {
    heard = Buffer.concat([heard, chunk as Buffer])
    const said = read(heard)
    if (said === null) continue
    child.kill('SIGKILL')
    if (said.build !== build) throw new ReplacedError()
    return said
  }
  const [status, signal] = await ended
  if (![process.execPath, file].every((path) => existsSync(path))) throw new ReplacedError()
  if (signal !== null)
    throw new SallyportError(
      'ERR_SHORTAGE',
      `the configuration was not read: the process for it was ended by ${signal}, as where memory or processes run out, or by us after ${patienceMs / 1000} s; see that there are both, and that the disk answers on which it lies`,
      { signal },
    )
  throw new Error(`the configuration was not read: the process for it ended with status ${status}`)
}

/** What was said, its length before it; null before all of it came. Another Node in the place of ours may write what ours can't read. */
function read(heard: Buffer): Said | null {
  if (heard.length < lengthBytes || heard.length - lengthBytes < heard.readUInt32LE()) return null
  try {
    return deserialize(heard.subarray(lengthBytes)) as Said
  } catch (error) {
    throw new ReplacedError(error)
  }
}
