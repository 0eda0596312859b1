// What a control slot has of a process that is up: a client of its own, what it lists, and who shares it.
import type { SallyportError } from '../../errors.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { Comparing } from '../../lib/once-compared.ts'
import type { Admission } from '../../schema/governor.ts'
import type { Answer } from '../client/answer.ts'
import type { ClientOptions, RequestOptions } from '../client/options.ts'
import { McpClient } from '../client/mcp-client.ts'
import type { OwnProcesses } from '../governed/own-processes.ts'
import { paramsWithCredentials } from '../message/credential-meta.ts'
import type { Ports, Running } from '../ports.ts'
import { SharedBoard } from '../shared/board.ts'
import { ToolSurface } from '../client/tool-surface.ts'
import type { ServerSettings } from '../../schema/settings.ts'

export interface Connection {
  readonly client: McpClient
  readonly surface: ToolSurface
  /** Null where sessions have processes of their own */
  readonly board: SharedBoard | null
  /** Aborted when the process is, or is to be, no more, with what whoever waits is told */
  readonly gone: AbortController
}

/** A connected server, kept from resting until disposed of. */
export interface Line extends Disposable {
  readonly instance: InstanceId
  /** Null while what the server lists is known; otherwise resolves when it was compared, or rejects where nobody is left to ask */
  readonly comparing: Comparing
  /** A signal for whatever is waited for before the call is sent: the given one, or that there is nobody to send it to */
  readonly until: (signal: AbortSignal) => AbortSignal
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
  readonly note: ClientOptions['note']
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
    shows: ({ tool, listed }) =>
      ports.gate.lists(server, tool) && ports.governor.shows(server, instance, listed),
  })
  const gone = new AbortController()
  const unwatch = ports.governor.watch(server.name, () => {
    if (surface.review()) note('tools/changed', { changed: true })
  })
  gone.signal.addEventListener('abort', unwatch, { once: true })
  return { client, surface, board, gone }
}

/**
 * Sends nothing more that way: what was sent may be answered until the returned function is called; where the process has ended,
 * until what it said last is read.
 */
export function leave(
  { client, surface, board, gone }: Connection,
  why: SallyportError,
  reason: string,
  hasEnded: boolean,
): () => void {
  client.leaving = why
  gone.abort(why)
  surface.close()
  board?.rest(reason)
  return () => {
    if (!hasEnded) client.close(why) // else it closes by itself
    board?.end(reason)
  }
}

interface LineParts {
  readonly instance: InstanceId
  /** For servers that have a process for each call */
  readonly own: OwnProcesses
  readonly letGo: () => void
}

/** What one call has of it. */
export function lineOf({ client, surface, gone }: Connection, { instance, own, letGo }: LineParts): Line {
  return {
    instance,
    comparing: () => (gone.signal.aborted ? nobodyLeft(gone.signal) : surface.known()),
    until: (signal) => AbortSignal.any([signal, gone.signal]),
    dress: (params) => client.dress(params),
    send: (admission, params, options) => {
      const { process, secrets } = admission
      if (process !== null) return own.call({ ...admission, process }, params, options)
      const values = secrets?.meta ?? null
      const sent = values === null ? params : paramsWithCredentials(params, values)
      return client.request('tools/call', sent, options)
    },
    [Symbol.dispose]: letGo,
  }
}

async function nobodyLeft({ reason }: AbortSignal): Promise<never> {
  throw reason
}
