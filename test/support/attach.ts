// A host at one end of a real socket pair, and a session at the other.
import { createServer, connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { boundless, type Room } from '../../src/schema/room.ts'
import type { Rule, ServerSettings, Settings } from '../../src/schema/settings.ts'
import type { Era } from '../../src/supervisor/message/probe.ts'
import { LogRing } from '../../src/supervisor/instance/log-ring.ts'
import type { Happening } from '../../src/supervisor/ports.ts'
import { Questions } from '../../src/supervisor/questions/questions.ts'
import { TaskIds } from '../../src/supervisor/lanes/tasks.ts'
import { Session } from '../../src/supervisor/session/session.ts'
import { governed, type Governed } from './governance.ts'
import { patienceMs } from './patience.ts'
import { noPools, plainLaunch } from './plain-launch.ts'
import { tempDir } from './temp-dir.ts'
import type { Launch } from '../../src/supervisor/ports.ts'

/** Lets everything pass. */
export const allowAll: readonly Rule[] = [
  { permission: 'mcp:*:*', action: 'allow', where: {}, origin: 'rules[0]' },
]

/** What a host declares that can be asked for everything. */
export const askable = { elicitation: { form: {}, url: {} }, sampling: {} } as const

/** The same in `_meta` of each request, as the later era has it. */
export const askableMeta = { 'io.modelcontextprotocol/clientCapabilities': askable } as const

interface Options {
  readonly tasks?: TaskIds
  readonly questions?: Questions
  readonly rules?: readonly Rule[]
  readonly launch?: Launch
  readonly era?: Era | null
  readonly settings?: Partial<Settings>
  readonly state?: string
  readonly codeOf?: (server: ServerSettings) => string
  /** What may be kept for the host; without it nobody counts */
  readonly room?: Room
}

/** A host's end of an attached session. Disposing ends both. */
export class HostEnd implements AsyncDisposable {
  readonly session: Session
  readonly socket: Socket
  readonly events: Happening[]
  readonly launches: () => number
  readonly era: () => Era | null
  readonly governed: Governed
  /** What the server said on stderr */
  readonly logs: LogRing
  #received = Buffer.alloc(0)

  constructor(
    parts: Pick<HostEnd, 'session' | 'socket' | 'events' | 'launches' | 'era' | 'governed' | 'logs'>,
  ) {
    this.session = parts.session
    this.socket = parts.socket
    this.events = parts.events
    this.launches = parts.launches
    this.era = parts.era
    this.governed = parts.governed
    this.logs = parts.logs
    this.socket.on('data', (chunk: Buffer) => (this.#received = Buffer.concat([this.#received, chunk])))
    this.socket.on('error', () => undefined)
  }

  /** Every byte that came so far. */
  get received(): Buffer {
    return this.#received
  }

  /** Every line that came so far, as text. */
  get lines(): readonly string[] {
    return this.#received.toString('utf8').split('\n').slice(0, -1)
  }

  send(...messages: readonly (object | string | Buffer)[]): void {
    for (const message of messages) {
      if (Buffer.isBuffer(message)) this.socket.write(message)
      else this.socket.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
    }
  }

  /** The parsed message with that id, once it is there. */
  async answer(
    id: unknown,
    deadlineMs = patienceMs,
  ): Promise<
    Record<string, never> & {
      error?: { code: number; message: string; data?: Record<string, unknown> }
      result?: never
    }
  > {
    const deadline = performance.now() + deadlineMs
    for (;;) {
      const found = this.lines
        .map((line) => JSON.parse(line))
        .find((one) => 'id' in one && one.id === id && !('method' in one))
      if (found !== undefined) return found
      if (performance.now() > deadline)
        throw new Error(`no answer to ${String(id)}; got ${this.lines.join('\n').slice(0, 2000)}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  eventsOf(type: string): readonly Happening[] {
    return this.events.filter((event) => event.type === type)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy()
    await this.session.stop('the test is over')
    await this.governed[Symbol.asyncDispose]()
  }
}

/** Attaches a host to a server over a unix socket. */
export async function attach(
  server: ServerSettings,
  {
    rules = allowAll,
    launch = plainLaunch,
    era = null,
    tasks = new TaskIds(),
    questions = new Questions(),
    room = boundless,
    ...more
  }: Options = {},
): Promise<HostEnd> {
  const dir = await tempDir()
  const path = join(dir.path, 's')
  const listener = createServer({ allowHalfOpen: true }).listen(path)
  await once(listener, 'listening')
  const socket = connect(path)
  const [far] = (await once(listener, 'connection')) as [Socket]
  listener.close()
  await dir[Symbol.asyncDispose]()
  const events: Happening[] = []
  let known: Era | null = era
  let launches = 0
  const emit = (event: Happening): void => void events.push(event)
  let session: Session | null = null
  const halt = (_server: string, reason: string): void => void session?.stop(reason)
  const all = await governed({ servers: [server], rules, emit, halt, ...more })
  const logs = new LogRing(server.output.stderrBytes)
  session = new Session({
    server,
    toolLimit: 100,
    caller: {
      role: 'host',
      principal: { kind: 'uid', id: '1000', attributes: { uid: 1000, gid: 1000, pid: 1 } },
    },
    ports: {
      ...all.policy,
      emit,
      pools: noPools,
      launch: (...args) => {
        launches++
        return launch(...args)
      },
    },
    logs,
    verdicts: { get: () => known, set: (verdict) => (known = verdict) },
    lost: () => undefined,
    attempt: null,
    tasks,
    questions,
    runsUnasked: false,
    shared: null,
  })
  // Paused, as a control connection hands it over
  session.take(far.pause(), Buffer.alloc(0), room)
  return new HostEnd({
    session,
    socket,
    events,
    launches: () => launches,
    era: () => known,
    governed: all,
    logs,
  })
}
