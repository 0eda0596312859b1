// Whether a sandbox holds the places that a tool's declaration names: what a permit may speak of.
import { coversHost } from '../config/narrowing.ts'
import type { ServerSettings } from '../schema/settings.ts'

/** True when every scope is a path under a mount or in scratch space, or a `host:port` of the egress. */
export function contains(
  { mounts, egress }: Pick<ServerSettings, 'mounts' | 'egress'>,
  scopes: readonly string[],
): boolean {
  const places = ['/tmp', ...mounts.map(({ target }) => target)]
  const isPlace = (scope: string): boolean =>
    places.some((place) => scope === place || scope.startsWith(`${place}/`))
  const isHost = (scope: string): boolean => {
    const colon = scope.lastIndexOf(':')
    const asked = { host: scope.slice(0, colon), port: Number(scope.slice(colon + 1)), private: false }
    return egress.some((grant) => coversHost({ ...grant, private: true }, asked))
  }
  return scopes.every((scope) => (scope.startsWith('/') ? isPlace(scope) : isHost(scope)))
}
