// The containers of a run's daemons, and the engine of the run's own that they are in: nobody else ends it, and the run may.
import { setTimeout as delay } from 'node:timers/promises'
import { importImage } from '../support/image.ts'
import { processesWith } from '../support/leaks.ts'
import { canStartEngine, ownEngine } from '../support/own-engine.ts'

/** An engine, and those of its containers whose name is of one of the daemons. */
export interface Containers extends AsyncDisposable {
  /** What a daemon must be started with */
  readonly environment: Readonly<Record<string, string>>
  /** Throws while the engine does not answer */
  ids(): Promise<readonly string[]>
  kill(id: string): Promise<void>
  /** Makes one of this name that nobody will remove */
  plant(name: string): Promise<void>
  /** Kills the engine, and starts it again after so long: its containers have ended as when the power fails */
  outage(ms: number): Promise<void>
  /** The engine stands still for so long */
  pause(ms: number): Promise<void>
  /** Processes that are the engine's, and no container's */
  processes(): ReadonlySet<number>
}

/** Starts an engine where this user can, else null. */
export async function containersOf(daemons: () => readonly string[]): Promise<Containers | null> {
  if (!canStartEngine) return null
  const own = await ownEngine()
  return {
    environment: own.environment,
    async ids() {
      const all = await own.docker.listContainers({ all: true, abortSignal: AbortSignal.timeout(5000) })
      const ours = daemons()
      return all
        .filter(({ Names }) =>
          Names.some((name) => ours.some((daemon) => name.startsWith(`/sallyport-${daemon}-`))),
        )
        .map(({ Id }) => Id)
    },
    // It may have ended by itself.
    kill: (id) =>
      own.docker
        .getContainer(id)
        .kill()
        .catch(() => undefined),
    async plant(name) {
      const image = await importImage(own, 'planted', { files: {} })
      await own.docker.createContainer({ name, Image: image, Cmd: ['none'] })
    },
    async outage(ms) {
      own.dockerd.kill('SIGKILL')
      await delay(ms)
      await own.restart()
    },
    async pause(ms) {
      own.dockerd.kill('SIGSTOP')
      await delay(ms)
      own.dockerd.kill('SIGCONT')
    },
    processes: () => new Set(processesWith(`${own.folder}/`)),
    [Symbol.asyncDispose]: () => own[Symbol.asyncDispose](),
  }
}
