// How long a launch may take: the reading of a server's code has a bound of its own, before the server's.
import { SallyportError } from '../../errors.ts'
import type { ServerSettings } from '../../schema/settings.ts'

/** How long the first reading of a server's code may take, ms: hundreds of megabytes on a busy disk */
const registrationMs = 120_000

/** Calls the launch off where it takes too long, until it is disposed of. */
export class LaunchLimit implements Disposable {
  readonly #server: ServerSettings
  readonly #launch: AbortController
  #timer: NodeJS.Timeout

  constructor(server: ServerSettings, launch: AbortController) {
    this.#server = server
    this.#launch = launch
    const reading = `read within ${registrationMs} ms; see how much its package's \`with\` holds`
    this.#timer = setTimeout(() => this.#late(reading), registrationMs)
  }

  /** The code is read: the server's own time begins. */
  readonly registered = (): void => {
    clearTimeout(this.#timer)
    const { initializeMs } = this.#server.timeouts
    const launched = `launched within timeouts.initialize_ms (${initializeMs})`
    this.#timer = setTimeout(() => this.#late(launched), initializeMs)
  };

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #late(what: string): void {
    this.#launch.abort(
      new SallyportError('ERR_INITIALIZE_TIMEOUT', `server ${this.#server.name} was not ${what}`),
    )
  }
}
