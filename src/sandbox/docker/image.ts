// A server's image: resolved once to what nobody can change, and held to that at every launch. Nothing is pulled here.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import type { ServerSettings, Settings } from '../../schema/settings.ts'
import { type CommandPin, judgeName } from '../program/command.ts'
import { kindByName, type CommandKind } from '../program/command-kind.ts'
import { interpreterNamed } from '../program/interpreters.ts'
import type { Engine, ImageFacts } from './engine.ts'
import type { ImagePin } from './image-pin.ts'
import { judgeImage, judgeImageFacts, lookAt, refuseImage } from './image-judge.ts'
import { lookIntoImage, type OwnedEngine } from './look.ts'

type ImageServer = Pick<ServerSettings, 'name' | 'command'> & {
  readonly image: string
}

/** Resolves an image that the engine has. Throws ERR_IMAGE_MISSING where it has none of that name. */
export const pinImage = async (engine: Engine, { name: server, image }: ImageServer): Promise<ImagePin> => {
  const facts = await find(engine, server, image)
  return {
    reference: image,
    id: facts.Id,
    pinned: pinnedName(facts, image),
    volumes: volumesOf(facts),
    labels: Object.keys(facts.Config?.Labels ?? {}).toSorted(),
    variables: variablesOf(facts),
  }
}

/** Looks again. Throws ERR_IMAGE_MISSING, or ERR_IMAGE_CHANGED where the name leads to another image than was registered. */
export const recheckImage = async (engine: Engine, server: ImageServer, pin: ImagePin): Promise<void> => {
  const { Id } = await find(engine, server.name, pin.reference)
  if (Id === pin.id) return
  throw new SallyportError(
    'ERR_IMAGE_CHANGED',
    `image ${pin.reference} of server ${server.name} was registered as ${pin.id} and is ${Id} now; name it by its digest, or reload the daemon to register what is there now`,
    { server: server.name, image: pin.reference, registered: pin.id, got: Id },
  )
}

/**
 * Finds a server's command in its image: a name of `allowed_commands`, at the operator's path, else in the first folder of
 * `command_path` that has it. What it does with its arguments is told by its names, or by the operator.
 *
 * Throws ERR_COMMAND_NOT_ALLOWED or ERR_COMMAND_NOT_FOUND, and ERR_IMAGE_UNSAFE as `judgeImage` does. The digest is over the image and the path: with it everything
 * that the command could load is the same.
 */
export const pinImageCommand = async (
  owned: OwnedEngine,
  server: ImageServer,
  settings: Pick<Settings, 'allowedCommands' | 'commandPath'>,
  image: ImagePin,
): Promise<CommandPin> => {
  const allowed = judgeName(server, settings.allowedCommands)
  const candidates =
    allowed.path === null ? settings.commandPath.map((folder) => join(folder, allowed.name)) : [allowed.path]
  const { path, real } = await findIn(owned, server, image, candidates)
  const kind = kindOf(server, allowed.interpreter, kindByName(allowed.name, path, real), path)
  const sha256 = createHash('sha256')
    .update(JSON.stringify([image.id, path]))
    .digest('hex')
  const unchanging = { dev: 0n, ino: 0n, size: 0n, mtimeNs: 0n, ctimeNs: 0n }
  return {
    server: server.name,
    name: allowed.name,
    path,
    file: { path, sha256, ...unchanging },
    kind,
    interpreter: null,
  }
}

const find = async (engine: Engine, server: string, reference: string): Promise<ImageFacts> => {
  const facts = await engine.image(reference)
  if (facts !== null) return facts
  throw new SallyportError(
    'ERR_IMAGE_MISSING',
    `image ${reference} of server ${server} is not with the engine, and a launch pulls nothing; sallyport install docker:${reference}`,
    { server, image: reference },
  )
}

/** The digest by which the registry of that name knows the image; an image that none has given is known by its id. */
export const pinnedName = ({ Id, RepoDigests }: ImageFacts, reference: string): string => {
  if (reference.includes('@')) return reference
  const repository = reference.replace(/(?<=[^/]):[\w][\w.-]*$/, '')
  const known = (RepoDigests ?? []).find((digest) => `/${digest.split('@')[0]}`.endsWith(`/${repository}`))
  return known ?? Id
}

const volumesOf = ({ Config }: ImageFacts): readonly string[] => {
  const paths = Object.keys(Config?.Volumes ?? {}).map((path) => path.replace(/(?<=.)\/+$/, ''))
  return [...new Set(paths)].toSorted()
}

const variablesOf = ({ Config }: ImageFacts): readonly string[] => {
  const entries = (Config?.Env ?? []).filter((entry) => entry !== '')
  return [...new Set(entries.map((entry) => entry.split('=', 1)[0] ?? ''))].toSorted()
}

// The engine shows no file of an image itself.
const findIn = async (
  owned: OwnedEngine,
  server: ImageServer,
  image: ImagePin,
  candidates: readonly string[],
): Promise<{ readonly path: string; readonly real: string }> => {
  const refuse = refuseImage(image.reference, server.name)
  judgeImageFacts(image, server.name)
  const found = await lookIntoImage(owned, image, async (look) => {
    const volumes = await judgeImage(look, server.name, image)
    for (const path of candidates) {
      const stat = await lookAt(look, path, refuse)
      if (stat === null) continue
      const real = stat.linkTarget === '' ? path : stat.linkTarget
      const file = stat.linkTarget === '' ? stat : await look(real)
      if (file === null || !file.isFile || (file.mode & 0o111) === 0) continue
      const volume = volumes.find((volume) => isWithin(path, volume) || isWithin(real, volume))
      if (volume === undefined) return { path, real }
      throw refuse(
        `has a volume at ${volume}, which is empty in a sandbox, and ${path} in it; build it without, or give allowed_commands another path`,
      )
    }
    return null
  })
  if (found !== null) return found
  const { name, command } = server
  throw new SallyportError(
    'ERR_COMMAND_NOT_FOUND',
    `command ${command} of server ${name} is no program at ${candidates.join(' or ')} in image ${image.reference}; give allowed_commands its path in the image`,
    { server: name, image: image.reference },
  )
}

// Its content is not read, so a name that says nothing takes the operator's word.
const kindOf = (
  server: ImageServer,
  stated: string | null,
  byName: CommandKind,
  path: string,
): CommandKind => {
  if (byName.kind === 'launcher' || stated === null) {
    if (byName.kind !== 'program') return byName
    throw unknown(server, path)
  }
  if (stated === 'none') return { kind: 'program' }
  const interpreter = interpreterNamed(stated)
  if (interpreter !== null) return { kind: 'interpreter', interpreter }
  throw unknown(server, path)
}

const unknown = ({ name: server, command }: ImageServer, path: string): SallyportError =>
  new SallyportError(
    'ERR_COMMAND_NOT_ALLOWED',
    `what ${path} in the image of server ${server} does with its arguments is not known by its name; say so in allowed_commands: {name: ${command}, path: ${path}, interpreter: none}, or which interpreter it is`,
    { server },
  )
