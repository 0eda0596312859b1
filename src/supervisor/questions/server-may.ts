// What a server may ask of the host, by its settings.
import type { Route } from '../../schema/gate.ts'
import type { ServerSettings } from '../../schema/settings.ts'

/** True when messages of that route reach the host. A `sandboxed` server asks for nothing, whatever it is set to. */
export function serverMay(
  server: Pick<ServerSettings, 'trust' | 'elicitation' | 'sampling'>,
  route: Route,
): boolean {
  switch (route) {
    case 'relay':
    case 'cancel':
      return true
    case 'sampling':
      return maySample(server)
    case 'elicitation':
      return mayElicit(server)
    case 'client-task':
      return maySample(server) || mayElicit(server)
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

/** Why a server whose questions are off asks no person. */
export const whyOff = ({ trust }: Pick<ServerSettings, 'trust'>): string =>
  trust === 'sandboxed' ? 'the server is sandboxed' : 'elicitation.enabled is false'

export const queueIsFull = ({ elicitation }: Pick<ServerSettings, 'elicitation'>): string =>
  `elicitation.queue (${elicitation.queue}) questions wait already`

const mayElicit = ({ trust, elicitation }: Pick<ServerSettings, 'trust' | 'elicitation'>): boolean =>
  elicitation.enabled && trust !== 'sandboxed'

const maySample = ({ trust, sampling }: Pick<ServerSettings, 'trust' | 'sampling'>): boolean =>
  sampling && trust !== 'sandboxed'
