// What only the operator can ask: the same for all principals, and what would give a host power over others.
import { SallyportError } from '../../errors.ts'
import { unlessAborted } from '../../lib/deadline.ts'
import { RawJson } from '../../lib/raw-json.ts'
import type { InstanceView, OperatorMethods } from '../../rpc/protocol.ts'
import { approvalMethods } from './approval-methods.ts'
import { auditMethods } from './audit-methods.ts'
import { declarationMethods } from './declaration-methods.ts'
import { explain } from './explain.ts'
import { hostMethods } from './host-methods.ts'
import type { MethodPorts } from './host-methods.ts'
import type { Machine } from '../machine/machine.ts'
import type { MethodCall, MethodTable } from './methods.ts'
import { registrationMethods } from './registration-methods.ts'
import { trustMethods } from './trust-methods.ts'
import type { Caller, Policy } from '../../supervisor/ports.ts'
import type { Reloaded } from '../reload.ts'

/** What the operator's methods stand on beside those of hosts. */
export interface OperatorPorts extends MethodPorts {
  readonly policy: Policy
  readonly machine: MethodPorts['machine'] & Pick<Machine, 'pools'>
  /** The journal's folder */
  readonly directory: string
  readonly key: Uint8Array
  readonly reload: (caller: Caller) => Promise<Reloaded>
  /** Begins to end the daemon; the answer still goes out */
  readonly shutDown: (reason: string) => void
}

/** The methods of operator.sock. */
export function operatorMethods(ports: OperatorPorts): MethodTable<keyof OperatorMethods> {
  const { supervisor, shutDown } = ports
  return {
    ...hostMethods(ports),
    'servers/test': ({ server }, { caller, signal }) => supervisor.test(caller, server, { signal }),
    'servers/logs': ({ server, lines = 100, follow = false }, call) => {
      const past = supervisor.logs(call.caller, server, lines, follow)
      if (follow) followLogs(ports, server, call)
      return past
    },
    ...registrationMethods(ports),
    ...declarationMethods(ports),
    ...approvalMethods(ports),
    ...trustMethods(ports),
    ...auditMethods(ports),
    async 'policy/explain'({ server, tool, lineage = null }, call) {
      const given = call.text('arguments') ?? new RawJson('{}')
      const { caller, signal } = call
      const { id: principal } = caller.principal
      const slot = supervisor.own(caller, server)
      const unlisted = await whyUnlisted(slot?.known() ?? null, signal)
      const own = slot?.view() // as it is by now
      const isUp = own?.state === 'ready'
      const callers = { principal, own, down: whyDown(own), unlisted: isUp ? unlisted : null }
      const asked = { tool, lineage, arguments: given, ...callers }
      return explain(ports, supervisor.settingsOf(caller, server), asked)
    },
    'daemon/reload': (_params, { caller }) => ports.reload(caller),
    'daemon/shutdown': ({ reason }, call) => {
      call.afterReply(async () => shutDown(reason ?? 'the operator asked'))
      return { stopping: true }
    },
  }
}

/** Why a call finds nobody who knows what its server lists by now, or null; a caller who waits for that no longer is told nothing. */
async function whyUnlisted(known: Promise<void> | null, signal: AbortSignal): Promise<string | null> {
  try {
    if (known !== null) await unlessAborted(known, signal)
    return null
  } catch (thrown) {
    signal.throwIfAborted()
    return SallyportError.from(thrown).message
  }
}

/** Why a call fails at once, or null. */
const whyDown = (own: InstanceView | undefined): string | null =>
  own?.state === 'failed' || own?.state === 'backoff' ? (own.reason ?? own.state) : null

function followLogs({ supervisor }: OperatorPorts, server: string, call: MethodCall): void {
  call.afterReply(async (stream) => {
    const lines = supervisor.followLogs(call.caller, server, { signal: stream.signal })
    for await (const { line, lost } of lines) await stream.notify('servers/log', { server, line, lost })
  })
}
