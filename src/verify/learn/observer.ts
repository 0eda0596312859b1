// The observer beside a sandbox: attached while nothing of the server has run, and read until all of it has ended.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import { findObserveBinary } from '../../sandbox/init-binary.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import { Notebook, type Observation } from './observation.ts'

const attachMs = 5_000
const endMs = 10_000

/** Watches one sandbox. */
export class Observer {
  readonly #notebook = new Notebook()
  #child: ChildProcess | null = null
  #read: Promise<void> = Promise.resolve()

  /** For `LaunchWaiting.atGate`: returns once everything that starts from now on is seen. Throws ERR_SANDBOX_UNENFORCEABLE. */
  readonly attach = async ({ server, hostUid, hostGid }: SandboxSpec, initPid: number): Promise<void> => {
    // As the sandbox's own user, who owns its user namespace and so may trace what is in it: never as root.
    const isRoot = process.geteuid?.() === 0
    // By its descriptor: that user can't search every folder above it, such as root's home.
    await using program = await open(await findObserveBinary())
    const child = spawn('/proc/self/fd/3', [String(initPid)], {
      argv0: 'sallyport-observe',
      cwd: '/',
      env: {},
      stdio: ['ignore', 'pipe', 'pipe', program.fd],
      ...(isRoot ? { uid: hostUid, gid: hostGid } : {}),
    })
    this.#child = child
    const { stdout, stderr } = child
    if (stdout === null || stderr === null) throw this.#refused(server, 'it has no streams')
    let complaint = ''
    stderr.on('data', (chunk: Buffer) => (complaint = `${complaint}${chunk.toString()}`.slice(0, 500)))
    const ready = Promise.withResolvers<boolean>()
    const lines = createInterface({ input: stdout })
    lines.on('line', (line) => (line === 'ready' ? ready.resolve(true) : this.#notebook.take(line)))
    this.#read = once(lines, 'close').then(() => ready.resolve(false))
    child.once('error', (error) => {
      complaint = error.message
      ready.resolve(false)
    })
    const late = (): SallyportError => this.#refused(server, `it did not begin within ${attachMs} ms`)
    if (!(await within(ready.promise, attachMs, late)))
      throw this.#refused(server, complaint.trim() || 'it ended')
  }

  /** What was seen, once nothing of the sandbox is left. */
  async seen(): Promise<Observation> {
    const late = (): SallyportError =>
      new SallyportError('ERR_INTERNAL', `the observer does not end within ${endMs} ms of its sandbox`)
    await within(this.#read, endMs, late)
    return this.#notebook.observation()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child
    if (child === null || child.pid === undefined || child.exitCode !== null || child.signalCode !== null)
      return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  #refused(server: string, why: string): SallyportError {
    return new SallyportError(
      'ERR_SANDBOX_UNENFORCEABLE',
      `${server} cannot be observed: ${why}; see that kernel.yama.ptrace_scope is below 3, and that a container around this allows ptrace`,
      { server, control: 'ptrace' },
    )
  }
}
