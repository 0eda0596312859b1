// A sandbox's way to a host that carries a credential, in memory: a client that has said all of its bytes, and a host that answers.
import { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import { createBroker } from '../../src/credentials/broker.ts'
import { serveConnection } from '../../src/egress/intercept/connection.ts'
import { interceptLimits } from '../../src/egress/intercept/limits.ts'
import type { Signer } from '../../src/egress/intercept/signer.ts'
import { requestReader } from '../../src/egress/intercept/strict-server.ts'
import { HostTrust } from '../../src/egress/intercept/upstream.ts'
import { newInstanceId } from '../../src/lib/ids.ts'
import { LoopTurns } from '../../src/lib/loop-turns.ts'

export const host = 'a.test'
export const secret = 'tok_"odd/+%secret~0123456789'
export const otherSecret = 'tok_of-another-0123456789'

/** One end of a connection: what is written to it is kept, what is pushed is read from it. */
export class Wire extends Duplex {
  readonly #written: Buffer[] = []
  /** Told of each piece */
  readonly #told: (piece: Buffer) => void

  constructor(told: (piece: Buffer) => void = () => undefined) {
    super()
    this.#told = told
  }

  get written(): Buffer {
    return Buffer.concat(this.#written)
  }

  override _read(): void {
    // what there is was pushed
  }

  override _write(piece: Buffer, _: string, done: () => void): void {
    this.#written.push(piece)
    this.#told(piece)
    done()
  }

  // What an agent of node:http asks of a socket.
  setKeepAlive = (): this => this
  setNoDelay = (): this => this
  setTimeout = (): this => this
  ref = (): this => this
  unref = (): this => this
}

/** The secrets of one sandbox, with a lease that is open. */
export async function leased() {
  const broker = createBroker({
    sources: { api: { kind: 'env', variable: 'API' }, other: { kind: 'env', variable: 'OTHER' } },
    environment: { API: secret, OTHER: otherSecret },
    uid: process.getuid?.() ?? 0,
    initPath: '/nonexistent',
  })
  const injection = {
    inject: 'egress',
    headers: ['authorization'],
    query: true,
    body: true,
    websocket: true,
    placeholder: { prefix: 'ph_', length: 40 },
  } as const
  const secrets = broker.forSandbox({
    server: 'files',
    instance: newInstanceId(),
    injections: [
      { ...injection, use: 'api', as: 'API_TOKEN', hosts: [{ host, port: 80, caFile: null }] },
      {
        ...injection,
        use: 'other',
        as: 'OTHER_TOKEN',
        hosts: [{ host: 'other.test', port: 80, caFile: null }],
      },
    ],
    violated: () => undefined,
  })
  const request = {
    permit: 'p',
    call: 'c',
    names: ['api'],
    deadlineMs: 2 ** 31 - 1,
    attribution: 'window',
  } as const
  await secrets.lease(request, { signal: AbortSignal.timeout(10_000) })
  return {
    secrets,
    placeholder: secrets.environment['API_TOKEN'] ?? '',
    otherPlaceholder: secrets.environment['OTHER_TOKEN'] ?? '',
  }
}

type Leased = Awaited<ReturnType<typeof leased>>

const noSigner: Signer = {
  certificate: '',
  contextFor: () => Promise.reject(new Error('no TLS is spoken')),
}

/**
 * Serves a client that says these bytes, and no more, and reads all that comes; `hostOf` makes the host's end. Resolves when both ends
 * are closed with what either was told, and what the connection was cut for.
 */
export async function overWire(
  { secrets }: Leased,
  said: Uint8Array,
  hostOf: () => Wire,
): Promise<{ readonly toHost: Buffer; readonly toClient: Buffer; readonly cut: readonly string[] }> {
  const cut: string[] = []
  const client = new Wire()
  const dialled: Wire[] = []
  const { swap, redactor } = secrets
  const instance = newInstanceId()
  const grant = { host, port: 80, address: null, private: true, tls: false, reason: 'a test' }
  const served = serveConnection(
    {
      swap,
      redactor,
      signer: noSigner,
      trust: new HostTrust(null),
      limits: interceptLimits,
      readRequests: requestReader(interceptLimits),
      turns: new LoopTurns(),
    },
    client,
    { host, port: 80, server: 'files', instance, connection: 'k', grant },
    async () => {
      const upstream = hostOf()
      dialled.push(upstream)
      return upstream as unknown as Socket
    },
    { swapped: () => undefined, redacted: () => undefined, cut: (reason) => void cut.push(reason) },
  )
  client.push(said)
  await quiet(() => client.written.length + (dialled[0]?.written.length ?? 0))
  client.push(null)
  await quiet(() => client.written.length)
  client.destroy()
  await served
  const [upstream] = dialled
  upstream?.destroy()
  return { toHost: upstream?.written ?? Buffer.alloc(0), toClient: client.written, cut }
}

/** Turns of the event loop in which nothing is said before nobody is waited for any more */
const quietTurns = 12

async function quiet(said: () => number): Promise<void> {
  let [before, idle] = [said(), 0]
  while (idle < quietTurns) {
    await new Promise((resolve) => setImmediate(resolve))
    const now = said()
    idle = now === before ? idle + 1 : 0
    before = now
  }
}
