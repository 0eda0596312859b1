// Instructions of servers, which go to hosts before anything else of a server is known: those that were accepted, or the first.
import type { AcceptedSurface } from '../../call/declaration.ts'
import { isSameServer } from '../../call/live.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { digestOfInstructions, type SeenRest } from './seen.ts'

export interface IntroductionPorts {
  readonly ledger: { accepted(server: string): AcceptedSurface | null }
  readonly codeOf: (server: ServerSettings) => string
}

/** Processes that are known at once: more than can run */
const mostTold = 16_384

/** Knows what hosts were told by processes of servers of which nothing was accepted then. */
export class Introductions {
  readonly #ports: IntroductionPorts
  /** Instance -> digest of the instructions that passed */
  readonly #told = new Map<InstanceId, string>()

  constructor(ports: IntroductionPorts) {
    this.#ports = ports
  }

  /** Whether a host may be told them. Of a process whose server is accepted as it is seen, the first that are asked about are what passes. */
  passes(server: ServerSettings, instance: InstanceId | null, instructions: string): boolean {
    const accepted = this.#ports.ledger.accepted(server.name)
    const digest = digestOfInstructions(instructions)
    if (accepted !== null) {
      const identity = { serverVersion: server.version, codeDigest: this.#ports.codeOf(server) }
      return isSameServer(accepted, identity) && accepted.instructionsDigest === digest
    }
    if (server.acceptance !== 'first-use') return false
    if (instance === null) return true
    const told = this.#told.get(instance)
    if (told === undefined) this.#tell(instance, digest)
    return told === undefined || told === digest
  }

  /** Whether a process says one thing to its host and another to us: what is accepted of it then is for a person to say. */
  isTwofold(instance: InstanceId, { isTwofold, instructionsDigest }: SeenRest): boolean {
    return isTwofold || (this.#told.get(instance) ?? instructionsDigest) !== instructionsDigest
  }

  /** Of processes that nobody tells the end of, as of those that only tell their era, the oldest go. */
  #tell(instance: InstanceId, digest: string): void {
    this.#told.set(instance, digest)
    const [oldest] = this.#told.keys()
    if (this.#told.size > mostTold && oldest !== undefined) this.#told.delete(oldest)
  }

  /** The process is gone. */
  forget(instance: InstanceId): void {
    this.#told.delete(instance)
  }
}
