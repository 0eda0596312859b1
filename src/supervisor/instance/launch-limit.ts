// How long a launch may take: the reading of a server's code has a bound of its own, before the server's.
import { SallyportError } from '../../errors.ts'
import { whenSpent } from '../../lib/deadline.ts'
import type { ServerSettings } from '../../schema/settings.ts'

/** How long the first reading of a server's code may take, ms: hundreds of megabytes on a busy disk */
const registrationMs = 120_000

/** Calls the launch off where it takes too long, until it is disposed of. */
export class LaunchLimit implements Disposable {
  readonly #server: ServerSettings
  readonly #launch: AbortController
  #inTime: () => void

  constructor(server: ServerSettings, launch: AbortController) {
    this.#server = server
    this.#launch = launch
    const reading = `was not read within ${registrationMs} ms; see how much its package's \`with\` holds`
    this.#inTime = whenSpent(registrationMs, () => this.#late('ERR_INITIALIZE_TIMEOUT', reading))
  }

  /** The code is read: the server's own time begins. */
  readonly registered = (): void => {
    this.#inTime()
    const { driver, timeouts } = this.#server
    const launched = `was not launched within timeouts.initialize_ms (${timeouts.initializeMs})`
    // Nothing of a server has run yet: of a container it is the engine that all of this is asked of.
    const isAsked = driver === 'docker'
    const code = isAsked ? 'ERR_ENGINE_TIMEOUT' : 'ERR_INITIALIZE_TIMEOUT'
    const what = isAsked ? `${launched}, for which its container engine is asked; look at its log` : launched
    this.#inTime = whenSpent(timeouts.initializeMs, () => this.#late(code, what))
  };

  [Symbol.dispose](): void {
    this.#inTime()
  }

  #late(code: 'ERR_INITIALIZE_TIMEOUT' | 'ERR_ENGINE_TIMEOUT', what: string): void {
    this.#launch.abort(new SallyportError(code, `server ${this.#server.name} ${what}`))
  }
}
