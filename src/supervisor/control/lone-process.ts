// One start of a server apart from all that runs: launched, introduced to, and gone again.
import type { ServerSettings } from '../../schema/settings.ts'
import { McpClient } from '../client/mcp-client.ts'
import type { RequestOptions } from '../client/options.ts'
import { Instance } from '../instance/instance.ts'
import type { LogRing } from '../instance/log-ring.ts'
import { bugOf } from '../instance/notes.ts'
import { unavailable } from '../message/unavailable.ts'
import type { Ports, Running } from '../ports.ts'

export interface LoneProcessOptions {
  readonly server: ServerSettings
  readonly principal: string
  readonly logs: LogRing
  readonly ports: Pick<Ports, 'launch' | 'emit' | 'gate'>
  /** Stops it, wherever it stands */
  readonly signal: AbortSignal
  /** Those of the server that are not stopped: what ends the server ends them */
  readonly running: Set<LoneProcess>
}

/** Whoever made it stops it, whatever became of the rest. */
export class LoneProcess {
  readonly instance: Instance
  /** How long each answer is waited for, and who may wait no longer */
  readonly patience: RequestOptions
  readonly #options: LoneProcessOptions
  readonly #callOff: () => void
  readonly #halted = new AbortController()

  /** Starts nothing yet. `calledOff` is the reason of its end where the signal ends it. */
  constructor(options: LoneProcessOptions, calledOff: string) {
    const { server, principal, logs, ports, signal } = options
    const { launch, emit } = ports
    const afterLoss = (): { event: 'fail' } => ({ event: 'fail' })
    this.#options = options
    this.instance = new Instance({ server, purpose: 'control', principal, launch, emit, logs, afterLoss })
    const either = AbortSignal.any([signal, this.#halted.signal])
    this.patience = { timeoutMs: server.timeouts.initializeMs, signal: either }
    this.#callOff = (): void => void this.instance.stop(calledOff).catch(() => undefined)
    signal.addEventListener('abort', this.#callOff, { once: true })
    options.running.add(this)
  }

  get principal(): string {
    return this.#options.principal
  }

  /** Ends it, whoever waits for it: they are told why. Nothing of it runs any more when this resolves. */
  async halt(reason: string): Promise<void> {
    this.#halted.abort(unavailable(this.#options.server.name, reason))
    await this.instance.stop(reason)
  }

  /** Launches it. Fails as a launch does. */
  start(): Promise<Running> {
    return this.instance.start()
  }

  /** Shakes hands with what was started, and is its client from then on. Fails as a handshake does. */
  async introduce(process: Running): Promise<McpClient> {
    const { server, ports, principal } = this.#options
    const { id } = this.instance
    const client = new McpClient({
      process,
      server,
      gate: ports.gate,
      listChanged: () => undefined,
      note(type, detail, error) {
        if (error === undefined) return // whoever made it looks at what it says
        ports.emit({ type, server: server.name, instance: id, principal, detail, ...bugOf(error) })
      },
    })
    await client.handshake(this.patience)
    this.instance.ready()
    return client
  }

  /** Nothing of it runs any more; fails where that cannot be had. */
  async stop(reason: string): Promise<void> {
    this.#options.signal.removeEventListener('abort', this.#callOff)
    await this.instance.stop(reason).finally(() => this.#options.running.delete(this))
  }
}
