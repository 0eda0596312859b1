// What an image may not have where a server's mounts and files are to be.
import { unlessAborted } from '../../lib/deadline.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import type { SandboxSpec } from '../spec.ts'
import type { ImagePin } from './image-pin.ts'
import { judgeWay, placesOfVolumes, refuseImage } from './image-judge.ts'
import { lookIntoImage, type OwnedEngine } from './look.ts'

/** Judges the targets of a sandbox's mounts. */
export type JudgeTargets = (
  image: Pick<ImagePin, 'id' | 'reference' | 'volumes'>,
  spec: Pick<SandboxSpec, 'server' | 'mounts'>,
  waiting: { readonly signal: AbortSignal },
) => Promise<void>

/**
 * Returns what throws ERR_IMAGE_UNSAFE where a link of the image is on the way to a mount, since it may lead to where PID 1 is;
 * where something else is in its place; and where a volume lies in it.
 *
 * The engine is asked once for each image and its targets.
 */
export const targetJudge = (owned: OwnedEngine): JudgeTargets => {
  const judged = new Map<string, Promise<void>>()
  return async (image, spec, { signal }) => {
    const key = JSON.stringify([image.id, spec.mounts.map(({ target, kind }) => [target, kind])])
    const judging = judged.get(key) ?? judge(owned, image, spec)
    judged.set(key, judging)
    judging.catch(() => judged.delete(key))
    await unlessAborted(judging, signal)
  }
}

const judge = async (
  owned: OwnedEngine,
  { id, reference, volumes }: Parameters<JudgeTargets>[0],
  { server, mounts }: Parameters<JudgeTargets>[1],
): Promise<void> => {
  const refuse = refuseImage(reference, server)
  // A mount takes the place of a volume.
  const own = volumes.filter((path) => !mounts.some(({ target }) => target === path))
  await lookIntoImage(owned, { id, volumes }, async (look) => {
    const places = await placesOfVolumes(look, own, refuse)
    for (const { target, kind } of mounts) {
      const within = places.findIndex((place) => isWithin(place, target))
      if (within >= 0)
        throw refuse(
          `has a volume at ${own[within]}, within the mount at ${target}; give that another target`,
        )
      await judgeWay(look, { target, kind, isOurs: false }, refuse)
    }
  })
}
