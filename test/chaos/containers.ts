// The containers of a run's daemons, and the engine of the run's own that they are in: nobody else ends it, and the run may.
import { setTimeout as delay } from 'node:timers/promises'
import { importImage } from '../support/image.ts'
import { processesWith } from '../support/leaks.ts'
import { canStartEngine, type OwnEngine, ownEngine } from '../support/own-engine.ts'

/** An engine, and those of its containers whose name is of one of the daemons. */
export interface Containers extends AsyncDisposable {
  /** What a daemon must be started with */
  readonly environment: Readonly<Record<string, string>>
  /** Throws while the engine does not answer */
  ids(): Promise<readonly string[]>
  kill(id: string): Promise<void>
  /** Makes one of this name that nobody will remove */
  plant(name: string): Promise<void>
  /** Kills the engine, and starts it again after so long: its containers have ended as when the power fails. Throws `EngineLost` */
  outage(ms: number): Promise<void>
  /** The engine stands still for so long */
  pause(ms: number): Promise<void>
  /** Processes that are the engine's, and no container's */
  processes(): ReadonlySet<number>
}

/** That the engine of the run's own did not come up again: nothing is wrong with the daemon, and nothing is proven. */
export class EngineLost extends Error {}

/** Starts an engine whose containers are those of `daemons`, which may grow; null where none starts, and it says why. */
export async function containersOf(
  daemons: ReadonlySet<string>,
  say: (line: string) => void,
): Promise<Containers | null> {
  const own = await engineOrNot(say)
  if (own === null) return null
  return {
    environment: own.environment,
    async ids() {
      const all = await own.docker.listContainers({ all: true, abortSignal: AbortSignal.timeout(5000) })
      return all
        .filter(({ Names }) =>
          Names.some((name) => [...daemons].some((daemon) => name.startsWith(`/sallyport-${daemon}-`))),
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
      try {
        await own.restart().catch(() => own.restart())
      } catch (error) {
        throw new EngineLost(`the engine does not come up again: ${wordsOf(error)}`)
      }
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

async function engineOrNot(say: (line: string) => void): Promise<OwnEngine | null> {
  try {
    if (canStartEngine) return await ownEngine()
    say('without containers: only root, with dockerd installed, has an engine')
  } catch (error) {
    say(`without containers: no engine starts here: ${wordsOf(error)}`)
  }
  return null
}

/** In one line: what dockerd says last is why it ends. */
const wordsOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).trim().replaceAll('\n', ' | ').slice(-400)
