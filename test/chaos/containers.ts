// The containers of a run's daemons, where an engine answers.
import Docker from 'dockerode'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'

/** Containers whose label names one of the daemons. */
export interface Containers {
  ids(): Promise<readonly string[]>
  kill(id: string): Promise<void>
}

/** What the machine's engine has, or null where none answers that this user may use. */
export async function containersOf(daemons: () => readonly string[]): Promise<Containers | null> {
  const endpoint = findEndpoint(process.env)
  if (endpoint.kind !== 'unix') return null
  const docker = new Docker({ socketPath: endpoint.socketPath, timeout: 5000 })
  if (
    !(await docker.ping().then(
      () => true,
      () => false,
    ))
  )
    return null
  return {
    async ids() {
      const all = await docker.listContainers({ all: true })
      const ours = daemons()
      return all
        .filter(({ Names }) =>
          Names.some((name) => ours.some((daemon) => name.startsWith(`/sallyport-${daemon}-`))),
        )
        .map(({ Id }) => Id)
    },
    // It may have ended by itself.
    kill: (id) =>
      docker
        .getContainer(id)
        .kill()
        .catch(() => undefined),
  }
}
