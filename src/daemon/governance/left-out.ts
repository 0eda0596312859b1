// What a server lists that was not accepted with the rest: what of it was there then is known, and what comes later is news.
import type { AcceptedSurface, AcceptedTool } from '../../call/declaration.ts'
import type { Seen } from './seen.ts'

/** Listed as nobody can look at it, and neither accepted nor left out: nobody declared it. */
export const unreadNews = ({ unreadable }: Seen, { tools, leftOut }: AcceptedSurface): readonly string[] =>
  [...unreadable.keys()].filter((name) => !tools.has(name) && !leftOut.includes(name))

/**
 * What is listed beside what becomes accepted, for an acceptance to remember. An operator saw all of it. The standing word is about
 * what can be read: on a dynamic surface what could not be is accepted as soon as it can, on a static one nothing comes to it.
 */
export function leftOutOf(
  { server, digests, passedOver }: Seen,
  accepted: readonly AcceptedTool[],
  by: string,
  before: AcceptedSurface | null,
): readonly string[] {
  const names = new Set(accepted.map(({ declaration }) => declaration.name))
  if (by !== 'first-use') return [...digests.keys(), ...passedOver].filter((name) => !names.has(name))
  return before?.leftOut ?? (server.surface === 'static' ? passedOver : [])
}
