// What a server may ask of the host, by its settings.
import type { Route } from '../schema/gate.ts'
import type { ServerSettings } from '../schema/settings.ts'

/** True when messages of that route reach the host. A `sandboxed` server never elicits, whatever it is set to. */
export function serverMay(
  server: Pick<ServerSettings, 'trust' | 'elicitation' | 'sampling'>,
  route: Route,
): boolean {
  switch (route) {
    case 'relay':
    case 'cancel':
      return true
    case 'sampling':
      return server.sampling
    case 'elicitation':
      return mayElicit(server)
    case 'client-task':
      return server.sampling || mayElicit(server)
    case 'handshake':
    case 'probe':
    case 'filter':
    case 'list':
    case 'call':
    case 'govern':
    case 'listen':
    case 'roots':
    case 'refuse':
      return false
  }
}

const mayElicit = ({ trust, elicitation }: Pick<ServerSettings, 'trust' | 'elicitation'>): boolean =>
  elicitation.enabled && trust !== 'sandboxed'
