// What an image may not have: a link or a file that would make its sandbox another than the one that is asked for.
import { join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { unlessAborted } from '../../lib/deadline.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import type { SandboxSpec } from '../spec.ts'
import type { ImagePin } from './image.ts'
import { type Look, lookIntoImage, type OwnedEngine } from './look.ts'

/** Where everything of ours is in a container */
const ours = '/sallyport'

/** What the engine reads on this machine, outside of any sandbox, to learn who the container's user is */
const accounts = ['/etc/passwd', '/etc/group'] as const

/**
 * Throws ERR_IMAGE_UNSAFE where the image holds what would
 * - put PID 1 elsewhere than where the engine then starts it, so that a program of the image ran in its place, before the gate:
 *   anything at `/sallyport`;
 * - keep the engine waiting for ever: an account file that is a pipe or a device.
 *
 * An image never changes under its id, so once is enough.
 */
export const judgeImage = async (
  look: Look,
  server: string,
  { reference, volumes }: Pick<ImagePin, 'reference' | 'volumes'>,
): Promise<void> => {
  const volume = volumes.find((path) => isWithin(join('/', path), ours))
  if (volume !== undefined || (await look(ours)) !== null) {
    const what = volume === undefined ? 'something' : 'a volume'
    throw unsafe(
      reference,
      server,
      `has ${what} at ${volume ?? ours}, where Sallyport puts its own; build it without`,
    )
  }
  for (const path of accounts) {
    const found = await look(path)
    const real = found === null || found.linkTarget === '' ? found : await look(found.linkTarget)
    if (real === null || real.isFile) continue
    throw unsafe(
      reference,
      server,
      `has no ordinary file at ${path}, which the engine would read; build it with one, or without`,
    )
  }
}

/** Judges the targets of a sandbox's mounts. */
export type JudgeTargets = (
  image: Pick<ImagePin, 'id' | 'reference' | 'volumes'>,
  spec: Pick<SandboxSpec, 'server' | 'mounts'>,
  waiting: { readonly signal: AbortSignal },
) => Promise<void>

/**
 * Returns what throws ERR_IMAGE_UNSAFE where a link of the image is on the way to a mount, since it may lead to where PID 1 is.
 *
 * The engine is asked once for each image and its targets.
 */
export const targetJudge = (owned: OwnedEngine): JudgeTargets => {
  const judged = new Map<string, Promise<void>>()
  return async ({ id, reference, volumes }, { server, mounts }, { signal }) => {
    const targets = mounts.map(({ target }) => target)
    if (targets.length === 0) return
    const key = JSON.stringify([id, targets])
    const known = judged.get(key)
    const judging =
      known ??
      lookIntoImage(owned, { id, volumes }, async (look) => {
        for (const target of targets) await judgeWay(look, target, (what) => unsafe(reference, server, what))
      })
    judged.set(key, judging)
    judging.catch(() => judged.delete(key))
    await unlessAborted(judging, signal)
  }
}

const judgeWay = async (
  look: Look,
  target: string,
  refuse: (what: string) => SallyportError,
): Promise<void> => {
  const parts = target.split('/').filter((part) => part !== '')
  for (const index of parts.keys()) {
    const path = `/${parts.slice(0, index + 1).join('/')}`
    const found = await look(path)
    if (found === null || found.isFile) return
    if (found.linkTarget === '') continue
    throw refuse(
      `has a link at ${path}, which leads to ${found.linkTarget}: the mount at ${target} would be there; give it a target with no link on its way`,
    )
  }
}

const unsafe = (image: string, server: string, what: string): SallyportError =>
  new SallyportError('ERR_IMAGE_UNSAFE', `image ${image} of server ${server} ${what}`, { server, image })
