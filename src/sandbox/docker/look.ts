// Looks at files as the engine has them: in a container that is made for it, never started, and removed again.
import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { SallyportError } from '../../errors.ts'
import type { DaemonId } from '../../lib/ids.ts'
import type { FileStat } from './answers.ts'
import { containerName, labels } from './container.ts'
import { emptyRoot } from './empty-root.ts'
import type { ContainerPlan, Engine } from './engine.ts'

/** An engine, and the daemon whose what is made there is: a later one removes what this one left. */
export interface OwnedEngine {
  readonly engine: Engine
  readonly daemon: DaemonId
}

/** Says what is at a path; null for nothing. */
export type Look = (path: string) => Promise<FileStat | null>

/**
 * Looks around in an image. Its volumes are in memory there, as they will be in a sandbox: the engine would make folders of them,
 * with all that they hold.
 */
export const lookIntoImage = <T>(
  owned: OwnedEngine,
  { id, volumes }: { readonly id: string; readonly volumes: readonly string[] },
  use: (look: Look) => Promise<T>,
): Promise<T> => lookInside(owned, id, { Tmpfs: Object.fromEntries(volumes.map((path) => [path, ''])) }, use)

/** Makes a container of the image, with these folders and files of the engine's machine or of memory in it, and looks around. */
const lookInside = async <T>(
  { engine, daemon }: OwnedEngine,
  image: string,
  holds: Pick<ContainerPlan['HostConfig'], 'Mounts' | 'Tmpfs'>,
  use: (look: Look) => Promise<T>,
): Promise<T> => {
  const id = await engine.create(containerName({ instance: `look-${randomUUID()}` }, daemon), {
    Image: image,
    Entrypoint: ['/nothing'],
    WorkingDir: '/',
    NetworkDisabled: true,
    Labels: { [labels.daemon]: daemon },
    HostConfig: { NetworkMode: 'none', ReadonlyRootfs: true, CapDrop: ['ALL'], ...holds },
  })
  try {
    return await use((path) => engine.stat(id, path))
  } finally {
    await engine.remove(id)
  }
}

/**
 * Says that the engine has these files where this process has them.
 *
 * Throws ERR_SANDBOX_UNENFORCEABLE where it has others or none: this process is in a container, or a chroot, and the engine
 * is outside. One of the files should be of a name that is nowhere else.
 */
export const requireSameFiles = async (owned: OwnedEngine, paths: readonly string[]): Promise<void> => {
  const targetOf = (index: number): string => `/sallyport/${index}`
  const mounts = paths.map((path, index) => ({
    Type: 'bind' as const,
    Source: path,
    Target: targetOf(index),
    ReadOnly: true,
  }))
  const image = await emptyRoot(owned.engine)
  const differs = await lookInside(owned, image, { Mounts: mounts }, async (look) => {
    for (const [index, path] of paths.entries()) {
      const [ours, theirs] = await Promise.all([stat(path), look(targetOf(index))])
      if (theirs?.size !== ours.size || theirs.mtimeMs !== Math.floor(ours.mtimeMs)) return path
    }
    return null
  }).catch((error: unknown) => {
    const missing = paths.find((path) => isMissingSource(error, path))
    if (missing === undefined) throw error
    return missing
  })
  if (differs === null) return
  throw new SallyportError(
    'ERR_SANDBOX_UNENFORCEABLE',
    `the engine has another ${differs} than this process, or none: it is outside of the container that this process is in, and what it would mount is not what was judged; ` +
      `run sallyport where the engine runs, or use driver: bubblewrap in here`,
    { control: 'a local engine', path: differs },
  )
}

const isMissingSource = (error: unknown, path: string): boolean =>
  error instanceof SallyportError &&
  error.code === 'ERR_ENGINE_REFUSED' &&
  /bind source path does not exist|invalid mount config/.test(error.message) &&
  error.message.includes(path)
