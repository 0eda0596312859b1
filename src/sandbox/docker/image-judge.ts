// What an image may not have: what would make its sandbox another than the one that is asked for, or keep it from being built.
import { join } from 'node:path'
import { isNormal, isWithin } from '../../lib/path-overlap.ts'
import { SallyportError } from '../../errors.ts'
import type { FileStat } from './answers.ts'
import { statusOf } from './engine-failure.ts'
import type { ImagePin } from './image-pin.ts'
import type { Look } from './look.ts'

/** Where everything of ours is in a container */
const ours = '/sallyport'

/**
 * Where the engine or Sallyport puts a file in every container. The first two the engine reads, on this machine and outside of any
 * sandbox, to learn who the container's user is.
 */
const files = [
  '/etc/passwd',
  '/etc/group',
  '/etc/hosts',
  '/etc/hostname',
  '/etc/resolv.conf',
  '/etc/nsswitch.conf',
] as const

/** As large as an account file may be, bytes: no line of it is too long for the engine then */
const largestAccounts = 65_536

/** Where every container has memory, with the rights of the image's folder there: its server owns all but `/dev` */
const scratch = ['/tmp', '/home/user', '/dev'] as const

/** As many variables as an image may have, with as many bytes of names, since PID 1 is executed with all of them; labels and volumes */
const most = { variables: 1_000, labels: 1_000, nameBytes: 65_536, volumes: 100 } as const

/** Makes ERR_IMAGE_UNSAFE of what is said of the image. */
export type Refuse = (what: string) => SallyportError

export const refuseImage =
  (image: string, server: string): Refuse =>
  (what) =>
    new SallyportError('ERR_IMAGE_UNSAFE', `image ${image} of server ${server} ${what}`, { server, image })

/**
 * Throws ERR_IMAGE_UNSAFE where the image says of itself what no container can be made with: volumes in places that are the
 * kernel's, ours or none, variables that keep PID 1 from starting, and labels that keep the engine busy. Pure.
 */
export const judgeImageFacts = (
  { reference, volumes, variables, labels }: Pick<ImagePin, 'reference' | 'volumes' | 'variables' | 'labels'>,
  server: string,
): void => {
  const refuse = refuseImage(reference, server)
  if (volumes.length > most.volumes)
    throw refuse(`has ${volumes.length} volumes, at most ${most.volumes} are taken; build it with fewer`)
  for (const path of volumes) judgeVolume(path, refuse)
  for (const [what, names] of Object.entries({ variables, labels })) {
    const bytes = names.reduce((sum, name) => sum + Buffer.byteLength(name), 0)
    if (names.length > most[what as 'variables' | 'labels'] || bytes > most.nameBytes)
      throw refuse(
        `has ${names.length} ${what} with ${bytes} bytes of names, at most ${most[what as 'variables' | 'labels']} and ${most.nameBytes} are taken; build it with fewer`,
      )
  }
  const odd = variables.find((name) => name === '' || name.includes('\0'))
  if (odd !== undefined)
    throw refuse(`has a variable named ${JSON.stringify(odd)}, which no process can have; build it without`)
}

const judgeVolume = (path: string, refuse: Refuse): void => {
  const said = JSON.stringify(path.slice(0, 256))
  if (isWithin(path, ours))
    throw refuse(`has a volume at ${path}, where Sallyport puts its own; build it without`)
  if (files.some((file) => file === path))
    throw refuse(`has a volume at ${path}, where every container has a file; build it without`)
  const isFolder = isNormal(path) && path.split('/').every((part) => Buffer.byteLength(part) <= 255)
  if (path === '/' || !isFolder || path.length > 1_024)
    throw refuse(`has a volume at ${said}, which is no folder of a container; build it without`)
  const isKernels = ['/proc', '/sys', '/dev'].some((place) => isWithin(path, place))
  if (isKernels && !['/dev', '/dev/shm', '/sys', '/sys/fs/cgroup'].includes(path))
    throw refuse(`has a volume at ${said}, which is the kernel’s; build it without`)
}

/** Where a container has what is not its image's: nothing of the image may be mounted over it, around it or in it by a link. */
const taken = [ours, '/proc', '/sys', '/dev', '/tmp', '/home/user', ...files] as const

/**
 * Says where the memory of each volume will be, every link on the way followed as the engine follows it.
 *
 * Throws ERR_IMAGE_UNSAFE where a link leads one to where a container has something of another's.
 */
export const placesOfVolumes = async (
  look: Look,
  volumes: readonly string[],
  refuse: Refuse,
): Promise<readonly string[]> => {
  const places: string[] = []
  for (const path of volumes) {
    const place = await placeOf(look, path, refuse)
    places.push(place)
    const other = place === path ? undefined : taken.find((it) => isWithin(it, place) || isWithin(place, it))
    if (other !== undefined)
      throw refuse(
        `has a link on the way to its volume at ${path}, which would be at ${place}, in the way of ${other}; build it without`,
      )
  }
  return places
}

// What a link leads to is told with every further link followed.
const placeOf = async (look: Look, path: string, refuse: Refuse): Promise<string> => {
  let place = '/'
  for (const part of path.split('/').filter((it) => it !== '')) {
    place = join(place, part)
    const found = await lookAt(look, place, refuse)
    if (found !== null && found.linkTarget !== '') place = found.linkTarget
  }
  return place
}

/**
 * Throws ERR_IMAGE_UNSAFE where the image holds what would
 * - put PID 1 elsewhere than where the engine then starts it, so that a program of the image ran in its place, before the gate:
 *   anything at `/sallyport`;
 * - keep the engine waiting for ever, or reading: an account file that is a pipe, a device or large;
 * - keep memory from being mounted where every server has some, or where the image has a volume, or put it elsewhere.
 *
 * An image never changes under its id, so once is enough. Returns where the volumes are.
 */
export const judgeImage = async (
  look: Look,
  server: string,
  { reference, volumes }: Pick<ImagePin, 'reference' | 'volumes'>,
): Promise<readonly string[]> => {
  const refuse = refuseImage(reference, server)
  if ((await lookAt(look, ours, refuse)) !== null)
    throw refuse(`has something at ${ours}, where Sallyport puts its own; build it without`)
  for (const path of files) await judgeFile(look, path, refuse)
  for (const path of scratch) await judgeWay(look, { target: path, kind: 'directory', isOurs: true }, refuse)
  for (const path of volumes)
    if ((await lookBehind(look, path, refuse))?.isFolder === false)
      throw refuse(`has a volume at ${path}, and there no folder; build it without`)
  return placesOfVolumes(look, volumes, refuse)
}

/** Throws ERR_IMAGE_UNSAFE where a path holds what is no small ordinary file, links followed. */
const judgeFile = async (look: Look, path: string, refuse: Refuse): Promise<void> => {
  const file = await lookBehind(look, path, refuse)
  if (file !== null && !file.isFile)
    throw refuse(
      `has no ordinary file at ${path}, where every container has one; build it with one, or without`,
    )
  if (file !== null && file.size > largestAccounts)
    throw refuse(
      `has ${file.size} bytes at ${path}, which the engine reads, at most ${largestAccounts} are taken; build it with a shorter one`,
    )
}

/** What is to be mounted, and where. */
export interface Target {
  readonly target: string
  readonly kind: 'file' | 'directory' | 'socket'
  /** Whether every container has it, so that nobody could choose another target */
  readonly isOurs: boolean
}

/**
 * Throws ERR_IMAGE_UNSAFE where something of that kind can't be mounted at its target, or would be mounted elsewhere: a link or
 * a file is on the way, a folder through which others may not pass, or something of another kind in its place.
 */
export const judgeWay = async (look: Look, mount: Target, refuse: Refuse): Promise<void> => {
  const parts = mount.target.split('/').filter((part) => part !== '')
  for (const index of parts.keys()) {
    const path = `/${parts.slice(0, index + 1).join('/')}`
    const found = await lookAt(look, path, refuse)
    if (found === null) return
    const wrong = wrongOnWay(found, path, mount)
    if (wrong === null) continue
    const mend = mount.isOurs ? 'build it with an ordinary folder there, or none' : 'give it another target'
    throw refuse(`${wrong}; ${mend}`)
  }
}

const wrongOnWay = (found: FileStat, path: string, { target, kind, isOurs }: Target): string | null => {
  const isEnd = path === target
  const { linkTarget, isFolder, isFile, mode } = found
  if (linkTarget !== '')
    return `has a link at ${path}, which leads to ${linkTarget}: the mount at ${target} would be there`
  const isRight = isEnd && kind !== 'directory' ? isFile : isFolder
  if (!isRight)
    return `has something else than a ${isEnd ? kind : 'directory'} at ${path}, on the way to the mount at ${target}`
  // The memory that is mounted over a folder takes over its rights; any other mount has its own.
  const needed = !isEnd || target === '/dev' ? 0o001 : isOurs ? 0o700 : 0
  if ((mode & needed) === needed) return null
  return `has a folder at ${path} with mode ${mode.toString(8).padStart(4, '0')}, through which no server gets to ${target}`
}

/** Looks at what a link leads to, which has to be a place of the image's own. */
const lookBehind = async (look: Look, path: string, refuse: Refuse): Promise<FileStat | null> => {
  const found = await lookAt(look, path, refuse)
  if (found === null || found.linkTarget === '') return found
  const place = [ours, '/proc', '/sys', '/dev'].find((place) => isWithin(found.linkTarget, place))
  if (place !== undefined)
    throw refuse(
      `has a link at ${path} to ${found.linkTarget}, which is not the image’s own; build it without`,
    )
  return lookAt(look, found.linkTarget, refuse)
}

/** Says what is at a path. Without a word the engine refuses to say it of a link in a circle and of a way through a file. */
export const lookAt = async (look: Look, path: string, refuse: Refuse): Promise<FileStat | null> => {
  try {
    return await look(path)
  } catch (error) {
    if (statusOf(error) !== 500) throw error
    throw refuse(`has a link in a circle at ${path}, or a file on the way to it; build it without`)
  }
}
