// What a host may launch: under a name that is free and reads as no other, within its room, and nothing that was halted.
import { SallyportError } from '../../errors.ts'
import type { Caller } from '../../supervisor/ports.ts'
import type { Governance } from '../governance/governance.ts'
import { notLaunched } from '../entries.ts'
import type { Roster } from '../roster.ts'

/** What says which names are taken, and by whom. */
interface Known {
  readonly roster: Roster
  readonly governance: Governance
}

/** One host's leave room for the next one's, and all of them for the machine. What was quarantined keeps its own when it is gone. */
export function expectRoom({ roster, governance }: Known, name: string, { principal: { id } }: Caller): void {
  const { maxDynamicServers: most, dynamic, servers } = roster.settings
  const launchers = roster.launchers()
  const own = launchers.filter((owner) => owner === id).length
  const { length: halted } = governance.ledger
    .quarantined()
    .filter(({ server, owner }) => owner === id && !servers.has(server))
  if (own + halted >= most)
    throw notLaunched(
      name,
      `max_dynamic_servers (${most}) of uid ${id} is reached${halted === 0 ? '' : `, ${halted} of them quarantined`}`,
      halted === 0 ? 'remove one first' : 'remove one first, or have the operator release one',
    )
  if (launchers.length >= dynamic.inAll)
    throw notLaunched(
      name,
      `dynamic.in_all (${dynamic.inAll}) is reached by all hosts together`,
      'wait until one is removed',
    )
}

/** A name that the operator's server had stays that one's, with what was accepted under it and what is held against it. */
export const isOperators = ({ roster, governance }: Known, server: string): boolean =>
  roster.isOperators(server) || governance.ledger.knows(server)

/** A name of a host's choice is none that whoever approves a call could take for another server's; what those of other hosts are called is not told. */
export function expectUnlike(roster: Roster, server: string, { role, principal: { id } }: Caller): void {
  const other = roster.readsAs(server)
  if (other === null) return
  const isSeen = role === 'operator' || (other.owner ?? id) === id
  throw taken(server, `reads as ${isSeen ? `${other.name}, which` : 'a name that'} is taken`)
}

export const taken = (server: string, how = 'is taken'): SallyportError =>
  new SallyportError('ERR_SERVER_EXISTS', `the name ${server} ${how}; choose another`, { server })

/** What was halted stays halted, whatever its next name is: for its own principal, or for all where it was the operator's. */
export function expectNotQuarantined(
  { ledger }: Governance,
  name: string,
  origin: string | null,
  { principal }: Caller,
): void {
  const halt = ledger
    .quarantined()
    .find(
      ({ server, owner, origin: halted }) =>
        server === name || (halted !== null && halted === origin && (owner ?? principal.id) === principal.id),
    )
  if (halt === undefined) return
  if ((halt.owner ?? principal.id) !== principal.id)
    throw notLaunched(name, 'what had this name before is quarantined', 'choose another name')
  const what = halt.server === name ? 'it' : `the same thing, as ${halt.server},`
  throw notLaunched(
    name,
    `${what} is quarantined (${halt.failure}): ${halt.reason}`,
    `the operator releases it: sallyport release ${halt.server}`,
  )
}
