// Instructions of servers, which go to hosts before anything else of a server is known: those that were accepted, or the first.
import type { AcceptedSurface } from '../../call/declaration.ts'
import { isSameServer, type Live } from '../../call/live.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { digestOfInstructions, type SeenRest } from './seen.ts'

/** Which program said it. */
type Identity = Pick<Live, 'serverVersion' | 'codeDigest'>

interface Told extends Identity {
  readonly digest: string
}

export interface IntroductionPorts {
  readonly ledger: { accepted(server: string): AcceptedSurface | null }
  readonly codeOf: (server: ServerSettings) => string
}

/** Knows what hosts were told of servers of which nothing is accepted yet. */
export class Introductions {
  readonly #ports: IntroductionPorts
  readonly #told = new Map<string, Told>()

  constructor(ports: IntroductionPorts) {
    this.#ports = ports
  }

  /** Whether a host may be told them. Of a server that is accepted as it is seen, the first that are asked about are what passes. */
  passes(server: ServerSettings, instructions: string): boolean {
    const accepted = this.#ports.ledger.accepted(server.name)
    const identity = { serverVersion: server.version, codeDigest: this.#ports.codeOf(server) }
    const digest = digestOfInstructions(instructions)
    if (accepted !== null) return isSameServer(accepted, identity) && accepted.instructionsDigest === digest
    if (server.acceptance !== 'first-use') return false
    const told = this.#toldOf(server.name, identity)
    if (told === null) this.#told.set(server.name, { ...identity, digest })
    return told === null || told.digest === digest
  }

  /** Whether it says one thing here and another there: what is accepted of it then is for a person to say. */
  isTwofold(server: string, identity: Identity, rest: SeenRest): boolean {
    const { instructionsDigest } = rest
    return (
      rest.isTwofold || (this.#toldOf(server, identity)?.digest ?? instructionsDigest) !== instructionsDigest
    )
  }

  /** From now on what is accepted decides. */
  accepted(server: string): void {
    this.#told.delete(server)
  }

  #toldOf(server: string, identity: Identity): Told | null {
    const told = this.#told.get(server)
    return told !== undefined && isSameServer(told, identity) ? told : null
  }
}
