// Who is at the other end of a socket, as the kernel says; Node can't ask, so a child does, for as long as the daemon lives.
//
//   daemon                                          sallyport-init peer
//     |--- the socket, by a descriptor of its own ---->|
//     |<-- "uid gid pid" | "-" ------------------------|
import { type ChildProcess, type SendHandle, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { enough, SallyportError } from '../errors.ts'
import { whenLate } from '../lib/deadline.ts'
import { isShortage } from '../lib/missing.ts'

/** SO_PEERCRED: the ids at the time of connect; the pid may since belong to somebody else. */
export interface PeerCredentials {
  readonly uid: number
  readonly gid: number
  readonly pid: number
}

const deadlineMs = 5000

interface Waiting {
  readonly socket: Socket
  /** Whether a child failed over it already */
  readonly isSecond: boolean
  readonly resolve: (peer: PeerCredentials) => void
  readonly reject: (error: SallyportError) => void
}

/** Asks the kernel about accepted sockets through `sallyport-init peer`, one after another. Disposing ends that child. */
export class PeerQuery implements Disposable {
  readonly #initPath: string
  readonly #waiting: Waiting[] = []
  #child: ChildProcess | null = null
  #asked: Waiting | null = null
  #inTime = (): void => undefined
  #isDisposed = false

  constructor(initPath: string) {
    this.#initPath = initPath
  }

  /**
   * Throws where the kernel, or two children one after the other, give no answer: unknown is nobody. ERR_SHORTAGE where there is
   * not enough to start a child with, else ERR_NOT_AUTHORISED.
   */
  ask(socket: Socket): Promise<PeerCredentials> {
    const { promise, resolve, reject } = Promise.withResolvers<PeerCredentials>()
    this.#waiting.push({ socket, isSecond: false, resolve, reject })
    this.#advance()
    return promise
  }

  [Symbol.dispose](): void {
    const child = this.#child
    this.#child = null
    this.#isDisposed = true
    if (child?.connected === true) child.disconnect()
  }

  #advance(): void {
    while (this.#asked === null) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      const handle = handleOf(next.socket)
      if (handle === null) next.reject(unknown('the socket is closed'))
      else this.#send(next, handle)
    }
  }

  #send(asked: Waiting, handle: SendHandle): void {
    this.#asked = asked
    this.#inTime = whenLate(deadlineMs, () => this.#fail('no answer in time'))
    try {
      const child = (this.#child ??= this.#start())
      // Why it could not be started is told by `error`. Short of descriptors there is no channel, and Node's `kill` of what
      // has no pid would reach the daemon's own process group.
      if (child.pid === undefined) return
      child.send('', handle, {}, (error) => {
        if (error !== null && this.#asked === asked) this.#fail(error)
      })
    } catch (error) {
      this.#fail(error)
    }
  }

  #start(): ChildProcess {
    // Detached, since a Ctrl-C at the daemon's terminal is the daemon's to hear.
    const child = spawn(this.#initPath, ['peer'], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: {},
      cwd: '/',
      detached: true,
    })
    const ended = (why: unknown): void => {
      if (this.#child !== child) return
      this.#child = null
      if (this.#asked !== null) this.#fail(why)
    }
    child.on('message', (answer) => {
      if (this.#child === child) this.#answer(answer)
    })
    child.once('error', ended)
    child.once('exit', (code) => ended(`the query ended with ${code}`))
    // It lasts as long as the daemon, and is no reason for the daemon to.
    child.channel?.unref()
    child.unref()
    return child
  }

  #answer(answer: unknown): void {
    const asked = this.#settle()
    const peer = parse(String(answer))
    if (peer === null) asked?.reject(unknown(`the query said ${JSON.stringify(answer)}`))
    else asked?.resolve(peer)
    this.#advance()
  }

  /** A child that failed once is not asked again; another one is, about the same socket once. */
  #fail(why: unknown): void {
    const asked = this.#settle()
    this.#child?.kill('SIGKILL')
    this.#child = null
    if (asked?.isSecond === false && !this.#isDisposed) this.#waiting.unshift({ ...asked, isSecond: true })
    else asked?.reject(unknown(why))
    this.#advance()
  }

  #settle(): Waiting | null {
    const asked = this.#asked
    this.#asked = null
    this.#inTime()
    return asked
  }
}

// What lies below the socket, and not the socket: that one Node would take for handed over, and read no more.
function handleOf(socket: Socket): SendHandle | null {
  const handle: unknown = Reflect.get(socket, '_handle')
  const fd: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : undefined
  return typeof fd === 'number' && fd >= 0 ? (handle as SendHandle) : null
}

function parse(line: string): PeerCredentials | null {
  const match = /^(\d+) (\d+) (\d+)$/.exec(line)
  if (match === null) return null
  return { uid: Number(match[1]), gid: Number(match[2]), pid: Number(match[3]) }
}

// Nobody is let in either way; but who may be allowed, and comes where there is nothing to ask with, is to try again.
function unknown(why: unknown): SallyportError {
  const said = `credentials of the caller are not known: ${why instanceof Error ? why.message : String(why)}`
  return isShortage(why)
    ? new SallyportError('ERR_SHORTAGE', `${said}; ${enough}`, {}, { cause: why })
    : new SallyportError('ERR_NOT_AUTHORISED', said)
}
