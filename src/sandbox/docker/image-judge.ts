// What an image may not have: a link or a file that would make its sandbox another than the one that is asked for.
import { basename, dirname, join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { ImagePin } from './image.ts'
import type { Look } from './look.ts'

/** Where everything of ours is in a container */
const ours = '/sallyport'

/** What the engine reads on this machine, outside of any sandbox, to learn who the container's user is */
const accounts = ['/etc/passwd', '/etc/group'] as const

type JudgedServer = Pick<ServerSettings, 'name' | 'mounts' | 'package'>

/**
 * Throws ERR_IMAGE_UNSAFE where the image holds what would
 * - put PID 1 elsewhere than where the engine then starts it, so that a program of the image ran in its place, before the gate:
 *   anything at `/sallyport`, or a link on the way to a mount, which may lead there;
 * - keep the engine waiting for ever: an account file that is a pipe or a device.
 *
 * An image never changes under its id, so once is enough.
 */
export const judgeImage = async (
  look: Look,
  server: JudgedServer,
  { reference, volumes }: Pick<ImagePin, 'reference' | 'volumes'>,
): Promise<void> => {
  const unsafe = (what: string): SallyportError =>
    new SallyportError('ERR_IMAGE_UNSAFE', `image ${reference} of server ${server.name} ${what}`, {
      server: server.name,
      image: reference,
    })
  const volume = volumes.find((path) => isWithin(join('/', path), ours))
  if (volume !== undefined || (await look(ours)) !== null)
    throw unsafe(
      `has ${volume === undefined ? 'something' : 'a volume'} at ${volume ?? ours}, where Sallyport puts its own; build it without`,
    )
  for (const target of targetsOf(server))
    for (const path of wayTo(target)) {
      const found = await look(path)
      if (found === null || found.isFile) break
      if (found.linkTarget === '') continue
      throw unsafe(
        `has a link at ${path}, which leads to ${found.linkTarget}: the mount at ${target} would be there; give it a target with no link on its way`,
      )
    }
  for (const path of accounts) {
    const found = await look(path)
    const real = found === null || found.linkTarget === '' ? found : await look(found.linkTarget)
    if (real !== null && !real.isFile)
      throw unsafe(
        `has no ordinary file at ${path}, which the engine would read; build it with one, or without`,
      )
  }
}

const targetsOf = ({ mounts, package: code }: JudgedServer): readonly string[] => [
  ...mounts.map(({ target }) => target),
  ...(code === null
    ? []
    : [code.target, ...code.with.map((path) => join(dirname(code.target), basename(path)))]),
]

/** `/a`, `/a/b` and so on to the path itself. */
const wayTo = (path: string): readonly string[] =>
  join('/', path)
    .split('/')
    .filter((part) => part !== '')
    .map((_, index, parts) => `/${parts.slice(0, index + 1).join('/')}`)
