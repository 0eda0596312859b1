// One start of a server apart from all that runs, to see what it lists and nothing more: for whoever is to accept it.
import { readSurface, type Surface } from '../client/surface.ts'
import type { Ports } from '../ports.ts'
import { LoneProcess, type LoneProcessOptions } from './lone-process.ts'

/** Launches, shakes hands, reads all lists, stops. Fails as a launch or a handshake does; leaves nothing running. */
export async function look(parts: LoneProcessOptions & { readonly ports: Ports }): Promise<Surface> {
  const lone = new LoneProcess(parts, 'nobody looks any more')
  try {
    const client = await lone.introduce(await lone.start())
    const options = lone.patience
    const request = (method: string, params: string) => client.ask(method, params, options)
    return await readSurface(request, client.introduction, parts.ports.settings.tools.perServer)
  } finally {
    await lone.stop('it was looked at')
  }
}
