// A second sandbox of the same profile, up while the first is tried: what is in it, the first must not reach.
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { SallyportError } from '../../errors.ts'
import { newInstanceId } from '../../lib/ids.ts'
import { finds } from '../attempt.ts'
import type { KernelInside, Lab } from './lab.ts'
import { type Alter, startInside } from './try.ts'

/** What listens in a sandbox. */
export interface Listeners {
  /** Port on its 127.0.0.1 */
  readonly port: number
  /** Abstract socket, without the NUL; null where no sandbox can hold one */
  readonly abstract: string | null
}

/** A sandbox in which these listen, and its PID 1 on the host. Disposing ends it. */
export interface Neighbour extends Listeners, AsyncDisposable {
  readonly pid: number
}

/** Chooses a port that is free on the host too, where a sandbox without a network of its own would listen. */
export const chooseListeners = async (kernel: KernelInside): Promise<Listeners> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return { port, abstract: kernel === 'gvisor' ? null : `neighbour-${newInstanceId()}` }
}

/** Starts it, listening. Throws ERR_SANDBOX_SETUP where it does not come to that. */
export const startNeighbour = async (lab: Lab, listeners: Listeners, alter?: Alter): Promise<Neighbour> => {
  const asks = ['hold-listeners', `${listeners.port}`, listeners.abstract ?? '-']
  const sandbox = await startInside(lab, [finds(asks, () => null)], alter)
  try {
    const lines = createInterface({ input: sandbox.stdout })
    const said = ['line', 'close'].map((event) => once(lines, event, { signal: lab.signal }))
    const [line = 'it ended'] = (await Promise.race(said)) as [string?]
    if (!line.includes('"open"'))
      throw new SallyportError(
        'ERR_SANDBOX_SETUP',
        `nothing could listen in a second sandbox of ${lab.profile.name}: ${line.trim()}; see sallyport doctor`,
        { step: 'verify', profile: lab.profile.name },
      )
    sandbox.stdout.resume()
    return { ...listeners, pid: sandbox.initPid, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() }
  } catch (error) {
    await sandbox[Symbol.asyncDispose]()
    throw error
  }
}
