// Runs a script of ours as an ordinary user, from tests that run as root, wherever the clone lies.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { wholeMs } from './patience.ts'
import { clonePlace, ordinaryCode } from './probe-folder.ts'
import { ordinaryUid } from './user.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Runs `test/<script>` under Node with the arguments, as the ordinary user, and returns its stdout.
 *
 * A clone below /root is closed to that user, so the clone is bound to a folder that is not, in a mount namespace that ends
 * with the script.
 */
export const asUser = (script: string, ...args: readonly string[]): Promise<string> =>
  runAs(ordinaryUid, [], script, args)

/**
 * The same as a user of whom nobody else is, and who may have no more processes and threads than that. What any process of the
 * same id has started counts against it, so it is another one in each process of tests.
 */
export const asPoorUser = (most: number, script: string, ...args: readonly string[]): Promise<string> =>
  runAs(firstPoorUid + process.pid, ['prlimit', `--nproc=${most}:${most}`], script, args)

/** No account has one from there on; no process has an id of more than 4 194 304 */
const firstPoorUid = 3_000_000

const runAs = async (
  uid: number,
  under: readonly string[],
  script: string,
  args: readonly string[],
): Promise<string> => {
  using command = commandAs(uid, under, script, args)
  const options = { ...command.options, maxBuffer: 1 << 24, timeout: wholeMs }
  try {
    return (await promisify(execFile)('unshare', command.args, options)).stdout
  } catch (error) {
    const { code, signal, stderr } = error as { code?: unknown; signal?: unknown; stderr?: string }
    const said = `${script} ended with ${String(signal ?? code)}, and said: ${stderr ?? ''}`
    throw Object.assign(new Error(said, { cause: error }), { code, signal, stderr })
  }
}

/** What `unshare` is to be asked for, and its environment; disposing takes away what the clone was bound to. */
const commandAs = (uid: number, under: readonly string[], script: string, args: readonly string[]) => {
  const place = clonePlace()
  const folder = place ?? mkdtempSync(join(tmpdir(), 'sp-user-'))
  const node = process.execPath.startsWith(repository)
    ? join(folder, process.execPath.slice(repository.length))
    : process.execPath
  const drop = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...under]
  const bind = ['sh', '-c', 'mount --bind "$1" "$2" && shift 2 && exec "$@"', 'sh', repository, folder]
  const command = [...drop, node, join(folder, 'test', script), ...args]
  return {
    args: ['--mount', '--propagation', 'private', ...bind, ...command],
    options: {
      cwd: '/',
      env: { PATH: process.env['PATH'], HOME: '/nonexistent', ...ordinaryCode() },
    },
    [Symbol.dispose]: () => {
      if (place === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What that process says of one request: what was found, or why nothing was. */
export type Answer = readonly [id: number, said: unknown, error: string | null]

const waiting = new Map<number, PromiseWithResolvers<unknown>>()
let answering: ChildProcess | null = null
let asked = 0

/**
 * Has the ordinary user's process answer, `answer-as-user.ts`, and returns what it answered. There is one to a process of test files, since what it
 * has to load takes longer than most of what it is asked; it ends with that process.
 */
export const askUser = (what: 'fixture' | 'egress', args: unknown): Promise<unknown> => {
  answering ??= startAnswering()
  const id = asked++
  const answer = Promise.withResolvers<unknown>()
  waiting.set(id, answer)
  answering.stdin?.write(`${JSON.stringify([id, what, args])}\n`)
  return answer.promise
}

const startAnswering = (): ChildProcess => {
  const command = commandAs(ordinaryUid, [], 'support/answer-as-user.ts', [])
  const child = spawn('unshare', command.args, { ...command.options, stdio: ['pipe', 'pipe', 'inherit'] })
  createInterface(child.stdout).on('line', (line) => {
    const [id, said, error] = JSON.parse(line) as Answer
    const answer = waiting.get(id)
    waiting.delete(id)
    if (error === null) answer?.resolve(said)
    else answer?.reject(new Error(error))
  })
  child.once('close', (code) => {
    answering = null
    command[Symbol.dispose]()
    for (const [id, answer] of waiting) {
      waiting.delete(id)
      answer.reject(new Error(`the ordinary user’s process ended with ${code}`))
    }
  })
  return child
}
