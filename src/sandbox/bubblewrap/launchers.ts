// Launchers, of which one is started before it is wanted: Node's `spawn` forks the whole daemon, which takes milliseconds.
//
// One that waits is no other than one that doesn't: the same program with the same empty environment, which reads its first order. It
// has the daemon's rights until it is told whose to take, as each of them has; nobody but the daemon has the other end of its channel,
// with which it ends.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { within } from '../../lib/deadline.ts'
import { isStopped } from '../proof.ts'

/** How long one that is not wanted any more may take to be gone, ms. */
const goneMs = 2_000

/** Starts launchers of one path. Disposing ends the one that waits; those that were taken are their takers'. */
export class Launchers implements AsyncDisposable {
  readonly #path: string
  #spare: ChildProcess | null = null
  #soon: NodeJS.Immediate | undefined
  #isEnding = false

  constructor(path: string) {
    this.#path = path
  }

  /**
   * Starts one that waits, when this turn is over, unless one does.
   *
   * One that ends by itself, or can't be started, is not replaced until the next is taken: nothing goes round in circles.
   */
  prepare(): void {
    if (this.#isEnding || this.#spare !== null) return
    this.#soon ??= setImmediate(() => {
      this.#soon = undefined
      // Without descriptors or memory there is none that waits, and the next to be taken says what is missing.
      startLauncher(this.#path).then(
        (child) => this.#keep(child),
        () => {},
      )
    })
  }

  /**
   * Returns a launcher that nobody else has, and which was told nothing; a new one where another program is asked for than the
   * one that waits. Throws what `startLauncher` does.
   */
  async take(path: string): Promise<ChildProcess> {
    if (path !== this.#path) return startLauncher(path)
    const spare = this.#spare
    this.#spare = null
    if (spare === null || hasEnded(spare)) return startLauncher(path)
    // One that somebody stopped would be waited for until the launch is too late.
    if (isStopped(spare.pid ?? 0)) {
      void end(spare)
      return startLauncher(path)
    }
    for (const held of [spare, ...streamsOf(spare)]) held.ref()
    return spare
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true
    clearImmediate(this.#soon)
    const spare = this.#spare
    this.#spare = null
    if (spare !== null) await end(spare)
  }

  #keep(child: ChildProcess): void {
    for (const held of [child, ...streamsOf(child)]) {
      // It is no reason for the daemon to go on.
      held.unref()
      // Its end is told by `exit`: an error that nobody hears would end the daemon.
      held.on('error', () => {})
    }
    if (this.#isEnding || this.#spare !== null) void end(child)
    else this.#spare = child
  }
}

/**
 * Starts one launcher. Throws what Node's `spawn` throws or tells, ENOMEM among them.
 *
 * An empty environment and `/`: whatever the daemon has of either would be readable in /proc of the sandbox.
 * Detached, since a Ctrl-C at the daemon's terminal must reach the daemon's stop ladder, not the sandbox tool.
 */
export const startLauncher = async (path: string): Promise<ChildProcess> => {
  const child = spawn(path, ['outer'], {
    argv0: 'sallyport-init',
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
  })
  // Some errors are thrown and some are told; without a descriptor to spare there are no streams either.
  if (child.pid === undefined) await once(child, 'spawn')
  return child
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

const streamsOf = ({ stdio }: ChildProcess): Socket[] => stdio.filter((stream) => stream instanceof Socket)

const end = async (spare: ChildProcess): Promise<void> => {
  if (hasEnded(spare)) return
  const exit = once(spare, 'exit')
  spare.ref()
  spare.kill('SIGKILL')
  await within(exit, goneMs, () => new Error('a launcher that waited does not end')).catch(() => {})
}
