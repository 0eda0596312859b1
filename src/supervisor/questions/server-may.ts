// What a server may ask of the host, by its settings.
import type { Route } from '../../schema/gate.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { type Declared, whyNotDeclared } from './declared.ts'

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
    case 'client-task':
      return maySample(server)
    case 'elicitation':
      return mayElicit(server)
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

const off: Partial<Readonly<Record<Route, string>>> = {
  elicitation: 'elicitation.enabled is false',
  sampling: 'sampling is false',
  'client-task': 'sampling is false',
}

/** Why a server may not send what takes that route, where it may not. */
export function whyOff({ trust }: Pick<ServerSettings, 'trust'>, route: Route = 'elicitation'): string {
  const why = off[route]
  if (why === undefined) return 'no server may ask for it'
  return trust === 'sandboxed' ? 'the server is sandboxed' : why
}

/** Why a host is not asked, by the server's settings or by its own capabilities; null where it is. `params` are the question's. */
export const whyNotHost = (
  server: Pick<ServerSettings, 'trust' | 'elicitation' | 'sampling'>,
  declared: () => Declared,
  route: Route,
  params: unknown,
): string | null =>
  serverMay(server, route) ? whyNotDeclared(declared(), route, params) : whyOff(server, route)

export const queueIsFull = ({ elicitation }: Pick<ServerSettings, 'elicitation'>): string =>
  `elicitation.queue (${elicitation.queue}) questions wait already`

const mayElicit = ({ trust, elicitation }: Pick<ServerSettings, 'trust' | 'elicitation'>): boolean =>
  elicitation.enabled && trust !== 'sandboxed'

const maySample = ({ trust, sampling }: Pick<ServerSettings, 'trust' | 'sampling'>): boolean =>
  sampling && trust !== 'sandboxed'
