// One start of a server apart from all that runs, to see what it lists and nothing more: for whoever is to accept it.
import type { ServerSettings } from '../../schema/settings.ts'
import { Instance } from '../instance/instance.ts'
import type { LogRing } from '../instance/log-ring.ts'
import { McpClient } from '../client/mcp-client.ts'
import type { Ports } from '../ports.ts'
import { readSurface, type Surface } from '../client/surface.ts'

interface Parts {
  readonly server: ServerSettings
  readonly principal: string
  readonly logs: LogRing
  readonly ports: Ports
  readonly signal: AbortSignal
}

/** Launches, shakes hands, reads all lists, stops. Fails as a launch or a handshake does; leaves nothing running. */
export async function look({ server, principal, logs, ports, signal }: Parts): Promise<Surface> {
  const { launch, emit, gate, settings } = ports
  const afterLoss = (): { event: 'fail' } => ({ event: 'fail' })
  const instance = new Instance({ server, purpose: 'control', principal, launch, emit, logs, afterLoss })
  const abort = (): void => void instance.stop('nobody looks any more').catch(() => undefined)
  signal.addEventListener('abort', abort, { once: true })
  try {
    const process = await instance.start()
    const client = new McpClient({
      process,
      server,
      gate,
      listChanged: () => undefined,
      note: () => undefined,
    })
    const options = { timeoutMs: server.timeouts.initializeMs, signal }
    await client.handshake(options)
    instance.ready()
    const request = (method: string, params: string) => client.ask(method, params, options)
    return await readSurface(request, client.introduction, settings.tools.perServer)
  } finally {
    signal.removeEventListener('abort', abort)
    await instance.stop('it was looked at')
  }
}
