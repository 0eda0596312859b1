// The tools that one caller may see of the servers that are connected to it.
import { inTurns } from '../../lib/in-turns.ts'
import type { ToolView } from '../../rpc/governed.ts'
import type { Caller, Ports } from '../ports.ts'
import type { RegisteredServer } from '../registered-server.ts'
import { type DescriptionLength, viewTools, withoutCollisions } from './tool-view.ts'

/** Tools by displayed name, and the names that two tools would have had. */
export interface ShownTools {
  readonly tools: readonly ToolView[]
  readonly collisions: readonly string[]
}

/** Starts nothing, waits for no server; one that is not connected shows nothing. Collisions are told as events, too. */
export async function shownTools(
  servers: readonly RegisteredServer[],
  caller: Caller,
  ports: Ports,
  length: DescriptionLength,
): Promise<ShownTools> {
  const principal = caller.principal.id
  const shown = withoutCollisions(await inTurns(viewsOf(servers, principal, ports, length)))
  for (const name of shown.collisions) {
    const reason = 'two tools would be shown under one name, so neither is'
    ports.emit({ type: 'tools/collision', server: null, instance: null, principal, detail: { name, reason } })
  }
  return shown
}

function* viewsOf(
  servers: readonly RegisteredServer[],
  principal: string,
  ports: Ports,
  length: DescriptionLength,
): Generator<ToolView, undefined> {
  for (const one of servers) {
    const slot = one.madeSlot(principal)
    if (slot === null) continue
    const shown = (slot.tools?.tools ?? []).filter(({ listed }) =>
      ports.governor.shows(one.settings, slot.instance.id, listed),
    )
    yield* viewTools(one.settings, shown, ports, length)
  }
}
