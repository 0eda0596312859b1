// What a server lists that was not accepted with the rest: what of it was there then is known, and what comes later is news.
import type { AcceptedSurface, AcceptedTool } from '../../call/declaration.ts'
import type { AcceptedBody } from '../../call/facts.ts'
import type { Happening } from '../../supervisor/ports.ts'
import { event, mendOf } from './failure-events.ts'
import type { Seen } from './seen.ts'

/**
 * Listed as nobody can look at it, and neither accepted nor left out: nobody declared it. On a static surface what was so already
 * when it was accepted is no news, and where an older acceptance does not say, nothing is.
 */
export function unreadNews(
  { server, unreadable }: Seen,
  { tools, leftOut, unread }: AcceptedSurface,
): readonly string[] {
  if (server.surface === 'static' && unread === null) return []
  const known = new Set(server.surface === 'static' ? [...leftOut, ...(unread ?? [])] : leftOut)
  return [...unreadable.keys()].filter((name) => !tools.has(name) && !known.has(name))
}

/** Most names that are remembered on the standing word, and told of: one entry can have thousands */
const mostNames = 1024

/** That these are not accepted, as it is told of, and what brings that about. */
export const unaccepted = (server: string, tools: readonly string[], reason: string): Happening =>
  event('surface/unaccepted', server, { tools: tools.slice(0, mostNames), reason, mend: mendOf(server) })

interface How {
  readonly by: string
  readonly before: AcceptedSurface | null
  /** Only what is new is accepted: what was remembered of the rest stays so */
  readonly isAddition: boolean
}

/** What an acceptance remembers of what is listed beside what it accepts. */
export function rememberedOf(
  seen: Seen,
  accepted: readonly AcceptedTool[],
  how: How,
): Pick<AcceptedBody, 'leftOut' | 'unread' | 'renews'> {
  const unread =
    how.isAddition && how.before !== null
      ? how.before.unread
      : [...seen.unreadable.keys()].slice(0, mostNames)
  return { leftOut: leftOutOf(seen, accepted, how), unread, renews: true }
}

/**
 * An operator saw all of it. The standing word is about what can be read: on a dynamic surface what could not be is accepted as
 * soon as it can, on a static one nothing comes to it.
 */
function leftOutOf(
  { server, digests, passedOver }: Seen,
  accepted: readonly AcceptedTool[],
  { by, before }: How,
): readonly string[] {
  const names = new Set(accepted.map(({ declaration }) => declaration.name))
  if (by !== 'first-use') return [...digests.keys(), ...passedOver].filter((name) => !names.has(name))
  return before?.leftOut ?? (server.surface === 'static' ? passedOver.slice(0, mostNames) : [])
}
