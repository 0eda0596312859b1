// What was registered for each server, for the daemon's life: its command and its code, pinned, and held to that.
import { SallyportError } from '../errors.ts'
import { isWithin } from '../lib/path-overlap.ts'
import type { ServerSettings, Settings } from '../schema/settings.ts'
import { pinImage, pinImageCommand, recheckImage } from './docker/image.ts'
import type { ImagePin } from './docker/image-pin.ts'
import type { OwnedEngine } from './docker/look.ts'
import { judgeArguments } from './program/arguments.ts'
import { pinCommand, recheckCommand, type CommandPin, type Trust } from './program/command.ts'
import { expectScript, pinPackage, verifyPackage, type PackagePin } from './program/package.ts'
import { type PinFile, pinFileOnce } from './program/pinned-file.ts'
import {
  anyTree,
  type Bound,
  expectWithin,
  type Reading,
  readTree,
  recheckTree,
  type Tree,
} from './program/tree.ts'

/** What servers with images need. */
export interface Images {
  /** The engine that has them */
  readonly engine: () => Promise<OwnedEngine>
  /** Told what a name led to before anything runs from it, and what it leads to where that is no more the same */
  readonly record: RecordImage
}

/** Resolves once it is on record. */
export type RecordImage = (
  type: 'image.pinned' | 'image.changed',
  body: Readonly<Record<string, unknown>>,
) => Promise<unknown>

const noImages: Images = {
  engine: () =>
    Promise.reject(new SallyportError('ERR_INTERNAL', 'an image was to be pinned where there is no engine')),
  record: () => Promise.resolve(),
}

/** The identity of what a server runs. */
export interface Registration {
  readonly command: CommandPin
  readonly package: PackagePin | null
  /** Where the command is; null where it is a file of this machine */
  readonly image: ImagePin | null
}

/** Who waits for a registration. */
export interface PinWaiting {
  /** Ends the reading of code for whoever waits no more, and for those who wait for that reading */
  readonly signal?: AbortSignal
  /** Whether such code must be readable by every user of the machine */
  readonly isOpen?: boolean
  /** Whether it is one of many that are pinned on one word: what was read for another of them is not looked at again */
  readonly isOneOfMany?: boolean
}

/** One server's registration, as it was last looked at. */
interface Pin {
  current: Promise<Registration>
  latest: Registration | null
}

/** The most of a package that a host launches, all its folders together. */
const launchedBound = { entries: 50_000, bytes: 1024 ** 3 }

type RegistrationSettings = Pick<Settings, 'allowedCommands' | 'commandPath' | 'interpreterOptions'>

/**
 * Holds the registrations of one daemon. A reload forgets those of the servers that it changes, and with them their pins.
 *
 * Servers share programs such as node, and trees such as node_modules: each is read once, and a tree is looked through once
 * however many launches wait. A server that is pinned by itself comes later than the reading that it finds, so the tree is
 * looked through for it; those that a start or a reload pins on one word are not.
 */
export class Registrations {
  readonly #settings: RegistrationSettings
  readonly #trust: Trust
  readonly #images: Images
  readonly #pins = new Map<string, Pin>()
  readonly #pinFile: PinFile
  readonly #trees = new Map<string, Promise<Tree>>()
  readonly #rechecks = new Map<Tree, ReturnType<typeof recheckTree>>()

  /** `pinFile` reads programs: what was read for this config alone, unless it is another's too. */
  constructor(
    settings: RegistrationSettings,
    trust: Trust,
    images: Images = noImages,
    pinFile: PinFile = pinFileOnce(),
  ) {
    this.#images = images
    this.#pinFile = pinFile
    this.#settings = settings
    this.#trust = trust
  }

  /**
   * Returns what a server runs: pinned on the first call, and on every later one verified against that.
   *
   * A registration that failed is tried again by the next call; a change is reported by every call until the files
   * are as they were or the config is loaded again. Throws what `pinCommand`, `judgeArguments` and `pinPackage` throw,
   * and the signal's reason where code was to be read that nobody waits for any more.
   */
  async verified(server: ServerSettings, waiting: PinWaiting = {}): Promise<Registration> {
    const key = keyOf(server)
    const known = this.#pins.get(key)
    const pin = known ?? { current: this.#pin(server, waiting), latest: null }
    if (known === undefined) this.#pins.set(key, pin)
    try {
      const pinned = await pin.current
      const registration = known === undefined ? pinned : await this.#recheck(server, pinned, waiting)
      pin.current = Promise.resolve(registration)
      pin.latest = registration
      return registration
    } catch (error) {
      if (known === undefined && this.#pins.get(key) === pin) this.#pins.delete(key)
      throw error
    }
  }

  /** What `verified` last returned for a server, without looking at the files again; null before that. */
  latest(server: ServerSettings): Registration | null {
    return this.#pins.get(keyOf(server))?.latest ?? null
  }

  /** The next `verified` of these servers pins what is there then. */
  forget(servers: readonly ServerSettings[]): void {
    for (const server of servers) this.#pins.delete(keyOf(server))
    this.#trees.clear()
  }

  async #pin(server: ServerSettings, waiting: PinWaiting): Promise<Registration> {
    const { signal, isOpen = false, isOneOfMany = false } = waiting
    const { command, image } = await this.#pinProgram(server)
    // Before anything is read for long: a refused argument is refused at once.
    const { script } = judgeArguments(argumentRequest(server, command, this.#settings))
    const code = server.package
    let bound = boundOf(server, isOpen)
    const read = async (root: string): Promise<Tree> => {
      const tree = await this.#readOnce(root, { bound, signal }, isOneOfMany)
      bound = leftOf(bound, tree)
      return tree
    }
    const pinned = code && (await pinPackage(server.name, code, this.#trust, read))
    if (pinned !== null && script !== null && !isMountedOver(server, script)) expectScript(pinned, script)
    return { command, image, package: pinned }
  }

  async #pinProgram(server: ServerSettings): Promise<Pick<Registration, 'command' | 'image'>> {
    const { image: reference } = server
    if (reference === null)
      return { command: await pinCommand(server, this.#settings, this.#trust, this.#pinFile), image: null }
    const owned = await this.#images.engine()
    const inImage = { ...server, image: reference }
    const image = await pinImage(owned.engine, inImage)
    const command = await pinImageCommand(owned, inImage, this.#settings, image)
    const { id, pinned } = image
    await this.#images.record('image.pinned', { server: server.name, image: reference, id, pinned })
    return { command, image }
  }

  async #recheck(
    server: ServerSettings,
    pinned: Registration,
    { signal }: PinWaiting,
  ): Promise<Registration> {
    const { image } = pinned
    if (image !== null) await this.#recheckImage(server, image)
    const command = image === null ? await recheckCommand(pinned.command, this.#trust) : pinned.command
    // Which nobody shares where it can end before it is through.
    const recheck = (tree: Tree): ReturnType<typeof recheckTree> =>
      signal === undefined ? this.#recheckOnce(tree) : recheckTree(tree, signal)
    const code = pinned.package && (await verifyPackage(pinned.package, this.#trust, recheck))
    return { command, image, package: code }
  }

  async #recheckImage(server: ServerSettings, image: ImagePin): Promise<void> {
    const { engine } = await this.#images.engine()
    try {
      await recheckImage(engine, { ...server, image: image.reference }, image)
    } catch (error) {
      const { code, details } = SallyportError.from(error)
      if (code === 'ERR_IMAGE_CHANGED') await this.#images.record('image.changed', details)
      throw error
    }
  }

  // The first reading of a tree in a config's life is everybody's, as long as it succeeds; who comes alone looks at it again.
  async #readOnce(root: string, reading: Reading, isOneOfMany: boolean): Promise<Tree> {
    const known = this.#trees.get(root)
    const tree = known === undefined ? null : await known.catch(() => null)
    if (tree !== null) {
      const present = isOneOfMany ? tree : await this.#recheckOnce(tree)
      if (!('changed' in present)) return present
    }
    const fresh = readTree(root, reading)
    this.#trees.set(root, fresh)
    fresh.catch(() => this.#trees.delete(root))
    return fresh
  }

  // Only those who ask while it runs share it: who asks later wants to know of later changes.
  #recheckOnce(tree: Tree): ReturnType<typeof recheckTree> {
    const running = this.#rechecks.get(tree)
    if (running !== undefined) return running
    const checking = recheckTree(tree).finally(() => this.#rechecks.delete(tree))
    this.#rechecks.set(tree, checking)
    return checking
  }
}

const isMountedOver = ({ mounts }: ServerSettings, path: string): boolean =>
  mounts.some(({ target }) => isWithin(path, target))

// Another command or package under the same name is another registration.
const keyOf = ({ name, command, image, package: code }: ServerSettings): string =>
  JSON.stringify([name, command, image, code])

const boundOf = ({ scope }: ServerSettings, isOpen: boolean): Bound =>
  scope === 'dynamic' ? { ...launchedBound, isOpen } : anyTree

/** What one tree leaves for the next ones; throws UnpinnableError where it is too much itself, whoever read it. */
const leftOf = (bound: Bound, tree: Tree): Bound => {
  if (bound === anyTree) return bound
  expectWithin(tree, bound)
  return { ...bound, entries: bound.entries - tree.entries.size, bytes: bound.bytes - tree.bytes }
}

/** Returns what `judgeArguments` needs to judge a server's own arguments. */
export const argumentRequest = (
  { name, args }: Pick<ServerSettings, 'name' | 'args'>,
  command: CommandPin,
  { interpreterOptions }: Pick<Settings, 'interpreterOptions'>,
): Parameters<typeof judgeArguments>[0] => ({
  server: name,
  command: command.name,
  kind: command.kind,
  args,
  options: Object.hasOwn(interpreterOptions, command.name) ? (interpreterOptions[command.name] ?? []) : [],
})
