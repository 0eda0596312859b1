// From a server's command to the files that will be executed: looked up once, trusted, digested, and held to it.
import { lstat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { isMissing } from '../../lib/missing.ts'
import type { AllowedCommand, ServerSettings, Settings } from '../../schema/settings.ts'
import { type CommandKind, kindByMarker, kindByName, kindMarkers } from './command-kind.ts'
import { interpreterNamed, interpreterNames } from './interpreters.ts'
import {
  digestFile,
  identityOf,
  isSameFile,
  pinFile,
  type Digested,
  type PinFile,
  type PinnedFile,
} from './pinned-file.ts'
import { readShebang } from './shebang.ts'
import { atOnce, followTrusted } from '../../lib/trusted-path.ts'

/** Whose word is taken for a file: root's and this uid's. */
export interface Trust {
  /** The daemon's own uid */
  readonly uid: number
}

/** A command as it was registered. */
export interface CommandPin {
  readonly server: string
  /** The name that it was allowed under */
  readonly name: string
  /** The path that the name led to, before links */
  readonly path: string
  readonly file: PinnedFile
  readonly kind: CommandKind
  /** Where the command is a script: the program that runs it, and the argument that its first line adds */
  readonly interpreter: {
    readonly path: string
    readonly file: PinnedFile
    readonly argument: string | null
  } | null
}

type CommandSettings = Pick<Settings, 'allowedCommands' | 'commandPath'>
type CommandServer = Pick<ServerSettings, 'name' | 'command'>

/**
 * Returns the command of a server, pinned.
 *
 * 1. the name: bare, and in `allowed_commands`
 * 2. the path: the operator's own, or the first in `command_path` that has it; never a caller's PATH
 * 3. the real path, every folder and link on the way trusted; a regular file that may be executed
 * 4. its digest, and what it is: by its names, else by its content; the operator's word overrules both
 * 5. of a script, the program that its first line names, by the same steps
 *
 * Throws ERR_COMMAND_NOT_ALLOWED, ERR_COMMAND_NOT_FOUND, ERR_COMMAND_UNSAFE or, for a launcher behind a script,
 * ERR_ARGUMENT_REFUSED.
 */
export const pinCommand = async (
  server: CommandServer,
  settings: CommandSettings,
  trust: Trust,
  read: PinFile = pinFile,
): Promise<CommandPin> => {
  const allowed = judgeName(server, settings.allowedCommands)
  const place = `command ${allowed.name} of server ${server.name}`
  const path = allowed.path ?? (await lookUp(place, allowed.name, settings.commandPath))
  const real = await resolveTrusted(place, path, trust)
  const byName = kindByName(allowed.name, path, real)
  const isUnknown = byName.kind === 'program' && allowed.interpreter === null
  const { pin: file, digested } = await read(
    real,
    () => changedWhileRead(place, real),
    isUnknown ? kindMarkers : [],
  )
  const kind = judgeKind(server.name, allowed, byName, digested)
  const interpreter = await pinInterpreter(place, file.path, digested, settings, trust, read)
  return { server: server.name, name: allowed.name, path, file, kind, interpreter }
}

/**
 * Returns the pin, renewed where the file's facts differ and its content does not.
 *
 * The way to the file is judged again, cheaply; the digest is taken again whenever device, inode, size, mtime or ctime
 * differ. Throws ERR_COMMAND_CHANGED where the content differs or the path leads elsewhere, and what `pinCommand` does.
 */
export const recheckCommand = async (pin: CommandPin, trust: Trust): Promise<CommandPin> => {
  const place = `command ${pin.name} of server ${pin.server}`
  const file = await recheckFile(place, pin.path, pin.file, trust)
  if (pin.interpreter === null) return file === pin.file ? pin : { ...pin, file }
  const interpreterFile = await recheckFile(place, pin.interpreter.path, pin.interpreter.file, trust)
  if (file === pin.file && interpreterFile === pin.interpreter.file) return pin
  return { ...pin, file, interpreter: { ...pin.interpreter, file: interpreterFile } }
}

/** Returns the operator's word for a command. Throws ERR_COMMAND_NOT_ALLOWED where there is none, or the name is a path. */
export const judgeName = (
  { name: server, command }: CommandServer,
  allowed: readonly AllowedCommand[],
): AllowedCommand => {
  const shown = JSON.stringify(command.slice(0, 80))
  if (!/^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/.test(command))
    throw notAllowed(
      server,
      `command ${shown} of server ${server} is not a bare name of letters, digits and . _ + -`,
      'name a command of allowed_commands, where the operator may give it a path',
    )
  const found = allowed.find(({ name }) => name === command)
  if (found === undefined)
    throw notAllowed(
      server,
      `command ${shown} of server ${server} is not in allowed_commands (${allowed.map(({ name }) => name).join(', ')})`,
      'the operator may add it there',
    )
  return found
}

const notAllowed = (server: string, what: string, mend: string): SallyportError =>
  new SallyportError('ERR_COMMAND_NOT_ALLOWED', `${what}; ${mend}`, { server })

const lookUp = async (place: string, name: string, commandPath: readonly string[]): Promise<string> => {
  for (const folder of commandPath) {
    const path = join(folder, name)
    try {
      await lstat(path)
      return path
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
  throw new SallyportError(
    'ERR_COMMAND_NOT_FOUND',
    `${place} is in none of the folders of command_path (${commandPath.join(', ')}); install it, or give allowed_commands its path`,
    { command: name },
  )
}

const resolveTrusted = async (place: string, path: string, { uid }: Trust): Promise<string> => {
  const followed = await followTrusted(path, [uid], atOnce).catch((error: unknown) => {
    if (!isMissing(error)) throw error
    throw new SallyportError(
      'ERR_COMMAND_NOT_FOUND',
      `${place}, ${path}, leads to no file; install it or correct its path`,
      {
        path,
      },
    )
  })
  if (!followed.isTrusted) {
    const { place: where, what, mend } = followed.distrust
    throw unsafe(place, path, `${where} ${what}`, mend)
  }
  const { real, found } = followed
  if (!found.isFile())
    throw unsafe(place, path, `${real} is not a regular file`, 'give the path of the program itself')
  if ((found.mode & 0o111n) === 0n)
    throw unsafe(place, path, `${real} may not be executed`, `chmod +x ${real}`)
  return real
}

const unsafe = (place: string, path: string, what: string, mend: string): SallyportError =>
  new SallyportError('ERR_COMMAND_UNSAFE', `${place}, ${path}, is not trusted: ${what}; ${mend}`, { path })

const changedWhileRead = (place: string, path: string): SallyportError =>
  new SallyportError(
    'ERR_COMMAND_CHANGED',
    `${place}, ${path}, changed while its digest was taken; try again when it is installed`,
    { path },
  )

const judgeKind = (
  server: string,
  { name, interpreter }: AllowedCommand,
  byName: CommandKind,
  { marker, head }: Digested,
): CommandKind => {
  if (byName.kind === 'launcher') return byName
  if (interpreter === null) {
    const isBinary = head.toString('latin1', 0, 4) === '\x7fELF'
    return byName.kind === 'program' && isBinary && marker !== null ? kindByMarker(marker) : byName
  }
  if (interpreter === 'none') return { kind: 'program' }
  const stated = interpreterNamed(interpreter)
  if (stated !== null) return { kind: 'interpreter', interpreter: stated }
  const known = interpreterNames.join(', ')
  const what = `interpreter ${JSON.stringify(interpreter)} of allowed command ${name} is unknown`
  throw notAllowed(server, what, `use one of ${known}, or none`)
}

const pinInterpreter = async (
  place: string,
  script: string,
  { head }: Digested,
  settings: CommandSettings,
  trust: Trust,
  read: PinFile,
): Promise<CommandPin['interpreter']> => {
  const shebang = readShebang(head)
  if (shebang === null) return null
  const mend = 'give allowed_commands the program itself, and the script as its first argument'
  if (typeof shebang === 'string') throw unsafe(place, script, `it is a script, and ${shebang}`, mend)
  const { interpreter, argument } = shebang
  const path = interpreter.startsWith('/')
    ? interpreter
    : await lookUp(place, interpreter, settings.commandPath)
  const real = await resolveTrusted(place, path, trust)
  const { kind } = kindByName(basename(interpreter), path, real)
  if (kind !== 'interpreter')
    throw unsafe(place, path, `its first line names ${interpreter}, no known interpreter`, mend)
  const { pin: file, digested } = await read(real, () => changedWhileRead(place, real))
  if (readShebang(digested.head) !== null)
    throw unsafe(place, path, `its interpreter ${real} is a script too`, mend)
  return { path, file, argument }
}

const recheckFile = async (
  place: string,
  path: string,
  pinned: PinnedFile,
  trust: Trust,
): Promise<PinnedFile> => {
  const real = await resolveTrusted(place, path, trust)
  if (real !== pinned.path) throw changed(place, pinned, `${path} now leads to ${real}`)
  const before = identityOf(await lstat(real, { bigint: true }))
  if (isSameFile(before, pinned)) return pinned
  const { sha256 } = await digestFile(real)
  if (sha256 !== pinned.sha256) throw changed(place, pinned, `its sha256 is ${sha256}`)
  if (!isSameFile(before, await lstat(real, { bigint: true }))) throw changedWhileRead(place, real)
  return { ...pinned, ...before }
}

const changed = (place: string, { path, sha256 }: PinnedFile, what: string): SallyportError =>
  new SallyportError(
    'ERR_COMMAND_CHANGED',
    `${place}, registered as ${path} with sha256 ${sha256}, changed: ${what}; reload the daemon to register what is there now`,
    { path, sha256 },
  )
