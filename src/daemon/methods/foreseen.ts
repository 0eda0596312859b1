// How a tool or method stands for the next control call of a caller, as far as it can be told before the call is made.
import { isSameServer, whatOf } from '../../call/live.ts'
import type { Standing } from '../../call/ports.ts'
import type { InstanceView } from '../../rpc/protocol.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Governance } from '../governance/governance.ts'
import type { Machine } from '../machine/machine.ts'

export interface ForeseenPorts {
  readonly governance: Governance
  readonly machine: Pick<Machine, 'originOf'>
}

/** By what the caller's own instance lists; where it lists nothing at present, by what would run. */
export function foreseen(
  { governance, machine }: ForeseenPorts,
  server: ServerSettings,
  own: InstanceView | undefined,
  { kind, subject }: { readonly kind: 'tool' | 'method'; readonly subject: string },
): Standing {
  const [{ name }, { ledger }] = [server, governance]
  if (own !== undefined && ledger.live(own.id) !== null) return ledger.standing(name, own.id, kind, subject)
  const standing = ledger.standing(name, null, kind, subject)
  const accepted = ledger.accepted(name)
  if (standing.state !== 'accepted' || accepted === null) return standing
  // Of what was never read, the code is not known yet.
  const codeDigest = machine.originOf(server) === null ? accepted.codeDigest : governance.codeOf(server)
  const next = { serverVersion: server.version, codeDigest }
  if (isSameServer(accepted, next)) return standing
  return {
    state: 'replaced',
    reason: `${name} is ${whatOf(next)}, accepted was ${whatOf(accepted)}; see sallyport accept ${name}`,
  }
}
