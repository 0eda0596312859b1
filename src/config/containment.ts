// Whether a sandbox contains what a tool's declaration says of it: each class of side effect, each scope, by the grant for it.
import type { Injection } from '../schema/credentials.ts'
import type { EgressGrant } from '../schema/egress.ts'
import type { ProfileSettings, ServerSettings } from '../schema/settings.ts'
import { coversHost } from './narrowing.ts'

/** What a server was given, as far as a declaration may speak of it. */
export interface Granted {
  readonly name: string
  readonly mounts: readonly Pick<ServerSettings['mounts'][number], 'target'>[]
  readonly egress: readonly EgressGrant[]
  readonly credentials: readonly Pick<Injection, 'use'>[]
}

/** The credentials that a server was given, each once. */
export const namesOf = (injections: Granted['credentials']): readonly string[] => [
  ...new Set(injections.map(({ use }) => use)),
]

/** Folders that every sandbox has of its own. */
export const ownFolders: readonly string[] = ['/tmp']

/**
 * The grant without which a class of side effect can't happen in the sandbox, where that grant is missing; else null.
 *
 * Every sandbox can be read, and has scratch space to write; `other` is nothing that a grant could stand for.
 */
export function missingGrant(
  effect: string,
  { egress, credentials }: Pick<Granted, 'egress' | 'credentials'>,
  profile: Pick<ProfileSettings, 'name' | 'exec' | 'filesystem'> | null,
): string | null {
  switch (effect) {
    case 'network':
      return egress.length > 0 ? null : 'its entry has no egress'
    case 'execute':
      return profile?.exec === 'none' ? `exec is none in the profile ${profile.name}` : null
    case 'secret-access':
      return credentials.length > 0 ? null : 'its entry has no credentials'
    default:
      return null
  }
}

/** True when a scope is a path below a mount or the scratch space, or a `host:port` of the egress. */
export function isInside(scope: string, { mounts, egress }: Pick<Granted, 'mounts' | 'egress'>): boolean {
  const places = [...ownFolders, ...mounts.map(({ target }) => target)]
  return (
    places.some((place) => scope === place || scope.startsWith(place === '/' ? '/' : `${place}/`)) ||
    egress.some((grant) => containsHost(grant, scope))
  )
}

/** Why the sandbox does not contain these, or null: names the class or scope, and what is missing for it. */
export function uncontained(
  server: Granted,
  profile: Parameters<typeof missingGrant>[2],
  effects: readonly string[],
  scopes: readonly string[],
): string | null {
  for (const effect of effects) {
    const missing = missingGrant(effect, server, profile)
    if (missing !== null) return `the class ${effect} is declared, and of ${server.name} ${missing}`
  }
  const outside = scopes.find((scope) => !isInside(scope, server))
  if (outside === undefined) return null
  return `the scope ${outside} is declared, and ${server.name} has no ${outside.startsWith('/') ? 'mount' : 'egress'} that holds it`
}

/** Whether a scope such as `api.github.com:443` is what one entry of the egress grants; `*.github.com:443` is that entry alone. */
function containsHost(grant: EgressGrant, scope: string): boolean {
  const colon = scope.lastIndexOf(':')
  const asked = { host: scope.slice(0, colon), port: Number(scope.slice(colon + 1)) }
  return colon > 0 && coversHost(grant, asked)
}
