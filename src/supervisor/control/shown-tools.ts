// The tools that one caller may see of the servers that are connected to it.
import type { ToolView } from '../../rpc/governed.ts'
import type { Caller, Ports } from '../ports.ts'
import type { RegisteredServer } from '../registered-server.ts'
import { type DescriptionLength, viewTools, withoutCollisions } from './tool-view.ts'

/** Tools by displayed name, and the names that two tools would have had. */
export interface ShownTools {
  readonly tools: readonly ToolView[]
  readonly collisions: readonly string[]
}

/** Starts nothing, waits for nothing; a server that is not connected shows nothing. Collisions are told as events, too. */
export function shownTools(
  servers: readonly RegisteredServer[],
  caller: Caller,
  ports: Ports,
  length: DescriptionLength,
): ShownTools {
  const { governor, emit } = ports
  const principal = caller.principal.id
  const views = servers.flatMap((one) => {
    const slot = one.slot(principal)
    const shown = (slot.tools?.tools ?? []).filter(({ listed }) =>
      governor.shows(one.settings, slot.instance.id, listed),
    )
    return viewTools(one.settings, shown, ports, length)
  })
  const shown = withoutCollisions(views)
  for (const name of shown.collisions) {
    const reason = 'two tools would be shown under one name, so neither is'
    emit({ type: 'tools/collision', server: null, instance: null, principal, detail: { name, reason } })
  }
  return shown
}
