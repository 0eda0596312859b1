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
const concurrency = 2
/** Sockets that one child is asked about: starting it is what costs, and connections come in storms */
const batch = 64

interface Waiting {
  readonly socket: Socket
  readonly resolve: (peer: PeerCredentials) => void
  readonly reject: (error: SallyportError) => void
}

/** Asks the kernel about accepted sockets through `sallyport-init peer`, all that wait at once. */
export class PeerQuery {
  readonly #initPath: string
  readonly #waiting: Waiting[] = []
  #running = 0

  constructor(initPath: string) {
    this.#initPath = initPath
  }

  /** Throws ERR_NOT_AUTHORISED where the kernel or the child gives no answer: unknown is nobody. */
  ask(socket: Socket): Promise<PeerCredentials> {
    const { promise, resolve, reject } = Promise.withResolvers<PeerCredentials>()
    this.#waiting.push({ socket, resolve, reject })
    void this.#advance() // never rejects
    return promise
  }

  async #advance(): Promise<void> {
    if (this.#running >= concurrency || this.#waiting.length === 0) return
    this.#running += 1
    try {
      await answer(this.#initPath, this.#waiting.splice(0, batch))
    } finally {
      this.#running -= 1
      void this.#advance()
    }
  }
}

// The numbers are passed, not the sockets: Node stops reading a socket that it hands to a child. They are read and used
// within one turn of the loop (spawn forks before it returns), so they can't have become other descriptors in between.
async function answer(initPath: string, asked: readonly Waiting[]): Promise<void> {
  const open = asked.flatMap((waiting) => {
    const fd = descriptor(waiting.socket)
    if (fd === null) waiting.reject(unknown('the socket is closed'))
    return fd === null ? [] : [{ ...waiting, fd }]
  })
  if (open.length === 0) return
  try {
    const output = await query(
      initPath,
      open.map(({ fd }) => fd),
    )
    const lines = output.split('\n')
    for (const [index, { resolve, reject }] of open.entries()) {
      const peer = parse(lines[index] ?? '')
      if (peer === null) reject(unknown(`the query said ${JSON.stringify(lines[index] ?? '')}`))
      else resolve(peer)
    }
  } catch (error) {
    const refusal = unknown(error instanceof Error ? error.message : String(error))
    for (const { reject } of open) reject(refusal)
  }
}

async function query(initPath: string, fds: readonly number[]): Promise<string> {
  const child = spawn(initPath, ['peer'], {
    stdio: ['ignore', 'pipe', 'ignore', ...fds],
    env: {},
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
  })
  let output = ''
  child.stdout?.setEncoding('latin1').on('data', (text: string) => (output += text))
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  child.once('error', reject)
  child.once('close', (code) =>
    code === 0 ? resolve(output) : reject(new Error(`the query ended with ${code}`)),
  )
  return promise
}

function descriptor(socket: Socket): number | null {
  const handle: unknown = Reflect.get(socket, '_handle')
  const fd: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : undefined
  return typeof fd === 'number' && fd >= 0 ? fd : null
}

function parse(line: string): PeerCredentials | null {
  const match = /^(\d+) (\d+) (\d+)$/.exec(line)
  if (match === null) return null
  return { uid: Number(match[1]), gid: Number(match[2]), pid: Number(match[3]) }
}

function unknown(why: string): SallyportError {
  return new SallyportError('ERR_NOT_AUTHORISED', `credentials of the caller are not known: ${why}`)
}
