// What of the host a server is shown while it is learned: what somebody named, what it asked for, never what is denied.
import { lstat, open, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isMissing } from '../../lib/missing.ts'
import { isNormal, isWithin, overlapOf } from '../../lib/path-overlap.ts'
import { type Denial, type DenialFacts, findDenials } from '../../sandbox/mounts/denials.ts'

/** Why something is shown. */
export type Origin = 'code' | 'named' | 'asked'

export interface Shown {
  readonly path: string
  readonly origin: Origin
  readonly isFolder: boolean
}

/** Something that was asked for and is not given, and why. */
export interface Withheld {
  readonly path: string
  readonly why: string
}

/** Where nothing of the host's is ever shown at the same path: the sandbox has its own there. */
const own = ['/proc', '/sys', '/dev', '/sallyport', '/usr', '/bin', '/sbin', '/lib', '/lib64', '/lib32']
/** Folders that everybody writes to: what is in them is shown only where a person named it */
const shared = ['/tmp', '/var/tmp']
const homes = ['/home', '/root']
const sandboxHome = '/home/user'
const ids = { read: 4, search: 1 } as const

/** The view grows from run to run; no two paths of it hold one another. */
export class View {
  readonly #facts: DenialFacts
  readonly #home: string
  readonly #writable: readonly string[]
  readonly #withheld = new Map<string, string>()
  #shown: readonly Shown[] = []

  constructor(facts: DenialFacts, home: string, writable: readonly string[]) {
    this.#facts = facts
    this.#home = home
    this.#writable = writable
  }

  get shown(): readonly Shown[] {
    return this.#shown
  }

  /** Everything that was asked for and is not shown. */
  get withheld(): readonly Withheld[] {
    return [...this.#withheld].map(([path, why]) => ({ path, why }))
  }

  /** The shown path that holds this one. */
  holderOf(path: string): Shown | null {
    return this.#shown.find((each) => isWithin(path, each.path)) ?? null
  }

  /** Shows a path where there is one that may be shown, and says whether anything is new. */
  async show(path: string, origin: Origin): Promise<boolean> {
    if (!isNormal(path) || path === '/' || this.holderOf(path) !== null || this.#isWritable(path))
      return false
    const denied = this.whyDenied(path)
    if (denied !== null) return this.#withhold(path, denied)
    if (own.some((folder) => isWithin(path, folder)) || isWithin(path, sandboxHome)) return false
    const found = await stat(path).catch(() => null)
    if (found === null) return false
    if (!found.isFile() && !found.isDirectory())
      return this.#withhold(path, 'it is a socket, a device or a pipe, which no profile grants')
    const real = await realpath(path)
    const beyond = this.whyDenied(real)
    if (beyond !== null) return this.#withhold(path, `it leads to ${real}: ${beyond}`)
    if (found.isDirectory()) {
      const inside = this.#denials(real).find((denial) => denial.exists && holds(real, denial))
      if (inside !== undefined)
        return this.#withhold(path, `it holds ${inside.path}, ${inside.what}, by a mandatory rule`)
    }
    const isFolder = found.isDirectory()
    const [shy] =
      origin === 'asked' ? [path, real].flatMap((at) => this.#whyNotUnasked(at, isFolder) ?? []) : []
    if (shy !== undefined) return this.#withhold(path, `${shy}; name it with --read where it is needed`)
    if (!(await isReadable(real))) return this.#withhold(path, 'the user of a sandbox may not read it')
    this.#shown = [...this.#shown.filter((each) => !isWithin(each.path, path)), { path, origin, isFolder }]
    return true
  }

  /** Why no profile can grant a path, or null where one can. What would be in a person's home is judged as if it were there. */
  whyDenied(path: string): string | null {
    const meant = isWithin(path, sandboxHome) ? join(this.#home, path.slice(sandboxHome.length)) : path
    const denial = this.#denials(meant).find(
      ({ path: at, real }) => isWithin(meant, at) || isWithin(meant, real),
    )
    return denial === undefined ? null : `${denial.what}, denied by a mandatory rule`
  }

  /** What a server gets only where a person named it, however often it asks. */
  #whyNotUnasked(path: string, isFolder: boolean): string | null {
    if (shared.some((folder) => isWithin(path, folder))) return 'everybody writes to its folder'
    if ([...homes, this.#home].some((home) => isWithin(path, home))) return 'it is in somebody’s home'
    return isFolder && !path.slice(1).includes('/') ? 'it is a whole folder of the root' : null
  }

  /** Notes what was asked for in vain. */
  #withhold(path: string, why: string): false {
    this.#withheld.set(path, why)
    return false
  }

  /** Notes a path that nothing grants, and that was not given. */
  refuse(path: string, why: string): void {
    this.#withheld.set(path, why)
  }

  #isWritable(path: string): boolean {
    return this.#writable.some((folder) => overlapOf(path, folder) !== 'apart')
  }

  #denials(path: string): readonly Denial[] {
    return findDenials(this.#facts, [path])
  }
}

const holds = (path: string, { path: at, real }: Denial): boolean =>
  overlapOf(path, at) === 'above' || overlapOf(path, real) === 'above'

// As the launch will judge it: a daemon of root gives each sandbox a uid of its own, which owns nothing.
const isReadable = async (path: string): Promise<boolean> => {
  const found = await lstat(path)
  const needed = ids.read | (found.isDirectory() ? ids.search : 0)
  if (process.geteuid?.() === 0) return (found.mode & needed) === needed
  return open(path, 'r').then(
    async (handle) => {
      await handle.close()
      return true
    },
    () => false,
  )
}

/** The folder that a program's code is: its node_modules, else where its manifest is, else the file alone. */
export const codeOf = async (file: string): Promise<string> => {
  const [, above] = /^(.*?\/(?:node_modules|site-packages|dist-packages))\//.exec(file) ?? []
  if (above !== undefined) return above
  for (let folder = dirname(file); folder !== '/'; folder = dirname(folder))
    for (const manifest of ['package.json', 'pyproject.toml', 'setup.py'])
      if (await isThere(join(folder, manifest))) return folder
  return file
}

const isThere = async (path: string): Promise<boolean> => {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
