// What the operator does about trust, permits, holds and quarantine: what takes away at once, what gives once it is on record.
import { identityOf } from '../../call/declaration.ts'
import type { HoldBody, QuarantineBody } from '../../call/facts.ts'
import { makeVisible } from '../../call/question.ts'
import { SallyportError } from '../../errors.ts'
import { governedMethods } from '../../schema/governed-methods.ts'
import { meant } from '../../lib/nearest.ts'
import type { TrustView } from '../../rpc/governed.ts'
import { unavailable } from '../../supervisor/message/unavailable.ts'
import type { Supervisor } from '../../supervisor/supervisor.ts'
import { actor } from '../governance/actor.ts'
import type { Machine } from '../machine/machine.ts'
import type { Governance } from '../governance/governance.ts'
import type { MethodTable } from './methods.ts'
import { expectOpenHold, type Finder } from './no-secret.ts'

type Methods =
  | 'servers/quarantine'
  | 'servers/release'
  | 'servers/hold'
  | 'servers/holds'
  | 'trust/list'
  | 'trust/reset'
  | 'permits/list'
  | 'permits/revoke'

export interface TrustPorts {
  readonly governance: Governance
  readonly supervisor: Supervisor
  readonly machine: Pick<Machine, 'pools'>
  readonly redactor: Finder
}

/** The methods of operator.sock about what stands between a server and its calls. */
export function trustMethods(ports: TrustPorts): MethodTable<Methods> {
  const { governance, supervisor, machine, redactor } = ports
  const { ledger, permits } = governance
  return {
    async 'servers/quarantine'({ server, reason = 'an operator said so' }, { caller }) {
      supervisor.get(caller, server) // or there is no such server
      // Whoever calls it reads the reason.
      const why = makeVisible(reason)
      return { server, permits: await governance.consequences.stop(server, why, actor(caller)) }
    },
    async 'servers/release'({ name, what = null, reason = 'an operator said so' }, { caller }) {
      const released: ('quarantine' | 'hold')[] = []
      const halted = (): QuarantineBody | null =>
        ledger.quarantined().find(({ server }) => server === name) ?? null
      const hold = what === 'quarantine' ? undefined : ledger.holds().find((one) => one.name === name)
      const wasHalted = what !== 'hold' && halted() !== null
      if (what === null && wasHalted && hold !== undefined) throw bothOf(name, halted()?.reason ?? '')
      if (wasHalted) {
        const lastHalt = ledger.lastHalt(name)
        const fact = { type: 'server.released', body: { server: name, reason } } as const
        await governance.add(fact, { ...actor(caller) }, () => ledger.lastHalt(name) === lastHalt)
        // The word was of what was there before: what was quarantined anew before it was written, or while it was, stays so.
        if (halted() === null) await supervisor.release(name, reason)
      }
      if (hold !== undefined) {
        await governance.add({ type: 'hold.released', body: hold }, { ...actor(caller), reason })
        released.push('hold')
      }
      // Only now: it may have been quarantined anew until here.
      const anew = halted()
      if (wasHalted && anew === null) released.unshift('quarantine')
      if (wasHalted && anew !== null && released.length === 0)
        throw unavailable(
          name,
          `it was released, and is quarantined anew: ${anew.reason}; an operator lets it run again with sallyport release ${name}`,
        )
      if (released.length === 0 && what !== 'hold' && (await supervisor.release(name, reason)))
        released.push('quarantine')
      if (released.length > 0) return { released }
      const standing = [
        ...(what === 'quarantine' ? [] : ledger.holds().map((one) => one.name)),
        ...(what === 'hold' ? [] : ledger.quarantined().map(({ server }) => server)),
      ]
      throw new SallyportError(
        'ERR_HOLD_NOT_FOUND',
        `nothing is ${whatStands(what)} under ${JSON.stringify(name)}${meant(name, standing)}; sallyport hold shows holds, sallyport ps quarantines`,
        { name },
      )
    },
    async 'servers/hold'({ name, server = null, tool = null, lineage = null, reason = '' }, { caller }) {
      if (server === null && tool === null && lineage === null)
        throw new SallyportError(
          'ERR_INVALID_PARAMS',
          'servers/hold: got nothing that it covers, expected a server, a tool or a lineage',
        )
      const of = server === null ? null : supervisor.get(caller, server).name // or there is no such server
      if (tool !== null) expectKnown(governance, of, tool)
      const isTool = tool !== null && of !== null && toolsOf(governance, of).includes(tool)
      expectOpenHold(redactor, [isTool ? null : tool, lineage, name === of ? null : (name ?? null)])
      const hold: HoldBody = { name: name ?? nameOf(server, tool, lineage), server, tool, lineage }
      expectFree(governance, hold)
      const held = governance.consequences.hold(hold, reason, actor(caller))
      supervisor.review()
      // None of its calls comes before somebody lets it go.
      const isWhole = of !== null && tool === null && lineage === null
      const drained = isWhole ? machine.pools.drain(of, `the hold ${hold.name} stands on it`) : null
      await Promise.all([held, drained])
      return hold
    },
    'servers/holds': () => ({ holds: ledger.holds() }),
    async 'trust/list'({ server }, { caller }) {
      await governance.governors.settled()
      // Of one that is gone its record is there still.
      if (server !== undefined && toolsOf(governance, server).length === 0) supervisor.get(caller, server)
      return { trust: trustOf(governance, server ?? null) }
    },
    async 'trust/reset'({ server, tool, reason = 'an operator said so' }, { caller }) {
      const known = toolsOf(governance, server)
      if (known.length === 0) supervisor.get(caller, server) // or there is no such server
      const tools = tool === undefined ? known : known.filter((one) => one === tool)
      if (tools.length === 0) throw unearned(server, tool ?? null, known)
      await Promise.all(tools.map((one) => governance.consequences.reset(server, one, reason, actor(caller))))
      return { reset: trustOf(governance, server).filter((view) => tools.includes(view.tool)) }
    },
    'permits/list': () => ({
      permits: permits.list().map(({ id, identity, principal, expiresInMs }) => ({
        id,
        identity,
        principal,
        expires_in_ms: expiresInMs,
      })),
    }),
    async 'permits/revoke'({ id, server, reason = '' }, { caller }) {
      if ((id === undefined) === (server === undefined))
        throw new SallyportError(
          'ERR_INVALID_PARAMS',
          'permits/revoke: expected an id, or a server, and not both',
        )
      if (id !== undefined && !permits.list().some((permit) => permit.id === id))
        throw new SallyportError(
          'ERR_PERMIT_NOT_FOUND',
          `no permit ${id} lives: it was used, or its time is over; see sallyport permits`,
          { permit: id },
        )
      if (server !== undefined) supervisor.get(caller, server) // or there is no such server
      const asked = { permit: id ?? null, server: server ?? null }
      return { revoked: await governance.consequences.revoke(asked, reason, actor(caller)) }
    },
  }
}

const whatStands = (what: 'quarantine' | 'hold' | null): string =>
  what === null ? 'held or quarantined' : what === 'hold' ? 'held' : 'quarantined'

/** A hold is called as its server unless told otherwise: whoever ends it has not looked at why the server was halted meanwhile. */
const bothOf = (name: string, reason: string): SallyportError =>
  new SallyportError(
    'ERR_INVALID_PARAMS',
    `${name} is quarantined (${reason}), and a hold has that name, too; say which of them ends: sallyport release ${name} --hold, or --quarantine`,
    { name },
  )

/** A hold of what a server never had would hold nothing, without a word. */
function expectKnown(governance: Governance, server: string | null, tool: string): void {
  const isMethod = tool.includes('/')
  const known = isMethod ? governedMethods : server === null ? [] : toolsOf(governance, server)
  if (known.includes(tool) || (known.length === 0 && !isMethod)) return
  const what = isMethod
    ? `the method ${tool} is not governed`
    : `nothing is known of a tool ${tool} of ${server}`
  throw new SallyportError(
    'ERR_TOOL_NOT_FOUND',
    `${what}${meant(tool, known)}; see sallyport tools${server === null ? '' : ` ${server}`}`,
    { server, tool },
  )
}

/** Nothing begins anew of what has no record. */
function unearned(server: string, tool: string | null, known: readonly string[]): SallyportError {
  const what = tool === null ? 'any tool' : `a tool ${tool}`
  return new SallyportError(
    'ERR_TOOL_NOT_FOUND',
    `nothing is known of ${what} of ${server}${meant(tool ?? '', known)}; see sallyport trust`,
    { server, tool },
  )
}

/** A hold in the place of another would let pass what that one covers, without a word. */
function expectFree({ ledger }: Governance, { name, server, tool, lineage }: HoldBody): void {
  const other = ledger.holds().find((hold) => hold.name === name)
  if (other === undefined) return
  if (other.server === server && other.tool === tool && other.lineage === lineage) return
  const covered = [
    `server ${other.server ?? 'any'}`,
    `tool ${other.tool ?? 'any'}`,
    `lineage ${other.lineage ?? 'any'}`,
  ]
  throw new SallyportError(
    'ERR_HOLD_EXISTS',
    `another hold is called ${name} (${covered.join(', ')}); give this one a name of its own with --name, or end that one: sallyport release ${name}`,
    { name },
  )
}

const isOf = (server: string, identity: string): boolean => identity.startsWith(`${server}/`)

const nameOf = (server: string | null, tool: string | null, lineage: string | null): string =>
  [server ?? (tool === null ? 'lineage' : 'any'), tool, lineage?.replaceAll(/[^A-Za-z0-9_.:-]/g, '-') ?? null]
    .filter((part) => part !== null)
    .join('/')
    .slice(0, 300)

/** Accepted tools, and tools that have a record though nothing of them is accepted any more. */
function toolsOf({ ledger }: Governance, server: string): readonly string[] {
  const recorded = [...ledger.trusts().keys()].filter((key) => isOf(server, key))
  const accepted = [...(ledger.accepted(server)?.tools.keys() ?? [])]
  return [...new Set([...accepted, ...recorded.map((key) => key.slice(server.length + 1))])]
}

/** Every tool that was accepted or has a record, with its canonical identity where it was accepted. */
function trustOf(governance: Governance, server: string | null): readonly TrustView[] {
  const { ledger } = governance
  const known = [...ledger.trusts().keys()].map((key) => key.slice(0, key.indexOf('/')))
  const servers = server === null ? new Set([...ledger.servers(), ...known]) : [server]
  return [...servers].flatMap((name) =>
    toolsOf(governance, name).map((tool) => {
      const { tier, evidence, confidence, epoch, history } = ledger.trust(name, tool)
      const accepted = ledger.accepted(name)
      const identity = accepted?.tools.has(tool) === true ? identityOf(accepted, tool) : `${name}/${tool}`
      return { identity, server: name, tool, tier, evidence, confidence, epoch, violations: history }
    }),
  )
}
