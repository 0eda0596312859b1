// The gate on the protocol, where a caller may begin: what speaks another one is refused before anything is done for it.
import { SallyportError } from '../../errors.ts'
import { packageVersion } from '../../lib/version.ts'
import { protocolId } from '../../rpc/protocol.ts'

const mostCharacters = 64
// Of what runs: another package may lie in its place by the time that somebody is refused.
const version = packageVersion()

/**
 * Throws ERR_DAEMON_PROTOCOL where the parameters name a protocol that isn't this daemon's. To be asked before the other
 * parameters are judged, which may be others there. Who names none is let through; a value of another shape is the schema's.
 */
export function expectProtocol(params: unknown): void {
  if (typeof params !== 'object' || params === null || !Object.hasOwn(params, 'protocol')) return
  const asked: unknown = Reflect.get(params, 'protocol')
  if (typeof asked !== 'string' || asked.length > mostCharacters || asked === protocolId) return
  throw new SallyportError(
    'ERR_DAEMON_PROTOCOL',
    `this daemon (sallyport ${version}) speaks ${protocolId}, the caller ${JSON.stringify(asked)}; use the same version on both ends`,
    { protocol: protocolId },
  )
}
