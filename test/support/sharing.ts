// Hosts of a server whose process their sessions share, each at the end of a real socket.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { boundless } from '../../src/schema/room.ts'
import type { ServerSettings } from '../../src/schema/settings.ts'
import type { Caller } from '../../src/supervisor/ports.ts'
import { eventually } from './eventually.ts'
import { handled } from './handled.ts'
import { serverSettings } from './server-settings.ts'
import { speaker } from './speaker.ts'
import { caller, type Supervised, superviseAll } from './supervisor.ts'
import { tempDir } from './temp-dir.ts'

/** A message as it stands on the wire. */
export interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: {
    readonly code: number
    readonly message: string
    readonly data?: Record<string, unknown>
  }
}

/** One host in one session, that says what it is told. Disposing closes its end. */
export class Sharer implements AsyncDisposable {
  readonly socket: Socket
  readonly session: string
  readonly #closed: Promise<unknown>
  #text = ''

  constructor(socket: Socket, session: string) {
    this.socket = socket
    this.session = session
    socket.on('data', (chunk: Buffer) => (this.#text += chunk.toString('utf8')))
    socket.on('error', () => undefined)
    this.#closed = once(socket, 'close')
  }

  get messages(): readonly Message[] {
    return this.#text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Message)
  }

  /** Resolves when the session has closed it. */
  get closed(): Promise<unknown> {
    return this.#closed
  }

  send(...messages: readonly object[]): void {
    for (const message of messages) this.socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  /** A request of that id; resolves with the first answer to it. */
  ask(id: unknown, method: string, params: object = {}): Promise<Message> {
    const before = this.messages.length
    this.send({ id, method, params: { _meta: speaker, ...params } })
    return this.answer(id, before)
  }

  answer(id: unknown, from = 0): Promise<Message> {
    const answer = eventually(
      () => this.messages.slice(from).find((one) => one.id === id && one.method === undefined),
      8000,
    )
    return handled(answer)
  }

  /** Sends a call and waits for nothing. */
  begin(id: unknown, name: string, args: object = {}, _meta: object = {}): void {
    this.send({
      id,
      method: 'tools/call',
      params: { name, arguments: args, _meta: { ...speaker, ..._meta } },
    })
  }

  /** The text that a tool gives. */
  async call(id: unknown, name: string, args: object = {}): Promise<string> {
    const before = this.messages.length
    this.begin(id, name, args)
    const { result, error } = await this.answer(id, before)
    const [first] = (result?.['content'] ?? []) as readonly { text: string }[]
    return first?.text ?? JSON.stringify(error)
  }

  /** What it heard of that method. */
  told(method: string): readonly Readonly<Record<string, unknown>>[] {
    return this.messages.filter((one) => one.method === method).map(({ params = {} }) => params)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy()
    await this.#closed
  }
}

/** A server whose process is shared; `more` overrides. */
export const shares = (more: Partial<ServerSettings> = {}): ServerSettings =>
  serverSettings('shares.mjs', { instance: 'shared', surface: 'dynamic', ...more })

export interface Sharing extends Supervised {
  /** A further session of a principal */
  host(who?: Caller): Promise<Sharer>
}

/** One server, and as many hosts as are asked for. */
export async function sharing(
  server: ServerSettings = shares(),
  options: Parameters<typeof superviseAll>[1] = {},
): Promise<Sharing> {
  const all = await superviseAll([server], options)
  const hosts: Sharer[] = []
  return {
    ...all,
    async host(who = caller()) {
      const attachment = await all.supervisor.attach(who, { server: server.name })
      const dir = await tempDir()
      const listener = createServer({ allowHalfOpen: true }).listen(join(dir.path, 's'))
      await once(listener, 'listening')
      const socket = connect(join(dir.path, 's'))
      const [far] = (await once(listener, 'connection')) as [Socket]
      listener.close()
      await dir[Symbol.asyncDispose]()
      attachment.take(far.pause(), Buffer.alloc(0), boundless)
      const host = new Sharer(socket, attachment.session)
      hosts.push(host)
      return host
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(hosts.map((host) => host[Symbol.asyncDispose]()))
      await all[Symbol.asyncDispose]()
    },
  }
}
