// The starts of one server apart from all that serves: to see what it lists, and to test it. They end with the server.
import type { OperatorMethods } from '../../rpc/protocol.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Surface } from '../client/surface.ts'
import type { LogRing } from '../instance/log-ring.ts'
import type { Ports } from '../ports.ts'
import type { LoneProcess } from './lone-process.ts'
import { look } from './look.ts'
import { testServer } from './test-server.ts'

export interface ApartOptions {
  readonly server: ServerSettings
  readonly logs: LogRing
  readonly ports: Ports
}

interface Waiting {
  readonly signal: AbortSignal
}

/** Whoever made it halts it. */
export class ApartRuns {
  readonly #options: ApartOptions
  readonly #running = new Set<LoneProcess>()

  constructor(options: ApartOptions) {
    this.#options = options
  }

  /** What the server lists, whether or not that was accepted. */
  look(principal: string, { signal }: Waiting): Promise<Surface> {
    return look({ ...this.#options, principal, signal, running: this.#running })
  }

  /** Speaks to the server, and says how each step went. */
  test(principal: string, { signal }: Waiting): Promise<OperatorMethods['servers/test']['result']> {
    return testServer({ ...this.#options, principal, signal, running: this.#running })
  }

  /** Ends those of the principals that `whose` says yes to: each resolves when nothing of it is left. */
  halt(reason: string, whose: (principal: string) => boolean = () => true): readonly Promise<void>[] {
    return [...this.#running].filter(({ principal }) => whose(principal)).map((one) => one.halt(reason))
  }
}
