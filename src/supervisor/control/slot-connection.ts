// What a control slot has of a process that is up: a client of its own, what it lists, and who shares it.
import type { InstanceId } from '../../lib/ids.ts'
import type { Comparing } from '../../lib/once-compared.ts'
import type { Admission } from '../../schema/governor.ts'
import type { Answer, RequestOptions } from '../client/options.ts'
import { McpClient } from '../client/mcp-client.ts'
import type { Ports, Running } from '../ports.ts'
import { SharedBoard } from '../shared/board.ts'
import { ToolSurface } from '../client/tool-surface.ts'
import type { ServerSettings } from '../../schema/settings.ts'

export interface Connection {
  readonly client: McpClient
  readonly surface: ToolSurface
  /** Null where sessions have processes of their own */
  readonly board: SharedBoard | null
}

/** A connected server, kept from resting until disposed of. */
export interface Line extends Disposable {
  readonly instance: InstanceId
  /** Null while what the server lists is known; otherwise resolves when it was compared */
  readonly comparing: Comparing
  /** Parameters as `send` takes them: in the later era they also say who speaks */
  readonly dress: (params: string) => string
  /** Sends the `tools/call` that was admitted, in this turn */
  readonly send: (admission: Admission, params: string, options: RequestOptions) => Promise<Answer>
}

interface Parts {
  readonly server: ServerSettings
  readonly ports: Ports
  readonly process: Running
  readonly instance: InstanceId
  /** Gives the next generation of tool lists */
  readonly nextGeneration: () => number
  readonly listChanged: () => void
  readonly note: (type: string, detail: Readonly<Record<string, unknown>>) => void
}

/** Nothing was said yet. */
export function connectionTo(parts: Parts): Connection {
  const { server, ports, process, instance, nextGeneration, listChanged, note } = parts
  const board: SharedBoard | null =
    server.instance === 'shared'
      ? new SharedBoard({ server, instance, process, speaker: () => client, note })
      : null
  const client: McpClient = new McpClient({
    process,
    server,
    gate: ports.gate,
    listChanged,
    note,
    guests: board,
  })
  const surface = new ToolSurface({
    server,
    client,
    limit: ports.settings.tools.perServer,
    next: nextGeneration,
    observe: (seen) => ports.governor.observe({ server, instance, ...seen }),
  })
  return { client, surface, board }
}
