// Who is at the other end of a socket, as the kernel says; Node can't ask, so a short-lived child does.
import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { SallyportError } from '../errors.ts'

/** SO_PEERCRED: the ids at the time of connect; the pid may since belong to somebody else. */
export interface PeerCredentials {
  readonly uid: number
  readonly gid: number
  readonly pid: number
}

const deadlineMs = 5000
const concurrency = 8

/** Asks the kernel about accepted sockets through `sallyport-init peer`, a few at a time. */
export class PeerQuery {
  readonly #initPath: string
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(initPath: string) {
    this.#initPath = initPath
  }

  /** Throws ERR_NOT_AUTHORISED where the kernel or the child gives no answer: unknown is nobody. */
  async ask(socket: Socket): Promise<PeerCredentials> {
    while (this.#running >= concurrency) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#running += 1
    try {
      return parse(await query(this.#initPath, socket))
    } finally {
      this.#running -= 1
      this.#waiting.shift()?.()
    }
  }
}

// The number is passed, not the socket: Node stops reading a socket that it hands to a child. It is read and used within
// one turn of the loop (spawn forks before it returns), so it can't have become another descriptor in between.
async function query(initPath: string, socket: Socket): Promise<string> {
  const fd = descriptor(socket)
  const child = spawn(initPath, ['peer'], {
    stdio: ['ignore', 'pipe', 'ignore', fd],
    env: {},
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
  })
  let output = ''
  child.stdout?.setEncoding('latin1').on('data', (text: string) => (output += text.slice(0, 100)))
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  child.once('error', (error) => reject(unknown(error.message)))
  child.once('close', (code) =>
    code === 0 ? resolve(output) : reject(unknown(`the query ended with ${code}`)),
  )
  return promise
}

function descriptor(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle')
  const fd: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : undefined
  if (typeof fd !== 'number' || fd < 0) throw unknown('the socket is closed')
  return fd
}

function parse(output: string): PeerCredentials {
  const match = /^(\d+) (\d+) (\d+)\n?$/.exec(output)
  if (match === null) throw unknown(`the query said ${JSON.stringify(output)}`)
  return { uid: Number(match[1]), gid: Number(match[2]), pid: Number(match[3]) }
}

function unknown(why: string): SallyportError {
  return new SallyportError('ERR_NOT_AUTHORISED', `credentials of the caller are not known: ${why}`)
}
