// What stays read-only inside a writable mount: the files by which a tree makes the host run something.
import type { Dirent } from 'node:fs'
import { lstat, opendir, realpath } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { inexactName, isDoubtful } from '../../lib/exact-name.ts'
import { errnoOf, isMissing } from '../../lib/missing.ts'
import { inLanes } from '../../lib/lanes.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import { words } from '../../lib/words.ts'
import type { Mount } from '../spec.ts'

const versionControl = '.git .hg .svn .bzr .jj _darcs .fslckout CVS'

const others = `
  .gitmodules .gitattributes .gitconfig .husky .githooks .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook
  .github .gitlab-ci.yml .circleci .envrc .direnv mise.toml .mise.toml .tool-versions
  .vscode .idea .cursor .cursorrules .windsurf .windsurfrules .zed .fleet .devcontainer .vs .nova .sublime-project
  .claude .codex .gemini .agents .continue .roo .roomodes .clinerules .aider.conf.yml .kiro .qwen .opencode opencode.json
  .mcp.json mcp.json AGENTS.md CLAUDE.md CLAUDE.local.md GEMINI.md
  .sallyport.yaml .sallyport.yml .sallyport.json sallyport.yaml sallyport.yml sallyport.json .sallyport
  .profile .login .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshrc .zshenv .zprofile .zlogin .zlogout
  .kshrc .mkshrc .cshrc .tcshrc .inputrc .xprofile .xinitrc .xsessionrc .vimrc .exrc .nvimrc .ripgreprc .tmux.conf
  .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs bunfig.toml .pypirc pip.conf .cargo .bundle .gdbinit .lldbinit
`

const versionControlNames: ReadonlySet<string> = new Set(words(versionControl))
/** Each of them. */
export const protectedNames: ReadonlySet<string> = new Set([...words(versionControl), ...words(others)])

/** Says whether a file or folder of this name is kept read-only inside writable mounts. */
export const isProtectedName = (name: string): boolean => protectedNames.has(name)

/** How far below the mount is looked, and how many folders, entries and findings are borne before the mount is refused. */
const searchDepth = 3
const folderLimit = 20_000
const entryLimit = 1_000_000
/** Entries that are read at once: a server may have made as many as it had time for, and everybody has a turn in between */
const entriesAtOnce = 256
/** Folders that are listed at once: each waits for its turn in a thread four times */
const foldersAtOnce = 8
/** Times that a folder is listed in which something goes meanwhile */
const mostTries = 5
const findingLimit = 256

/**
 * Returns the mounts that keep protected files of a writable mount as they are: each read-only on top of itself, and
 * the folders between it and the mount bound on themselves, so that they can't be renamed from under it.
 *
 * Three folders deep; not inside node_modules. What is created later is not protected, nor is a symbolic link of such
 * a name itself: what it leads to is, where that is in the mount. A link in the place of a version-control folder is
 * refused. Throws ERR_MOUNT_REFUSED also where the tree is too large to be searched, or a folder's name is not UTF-8.
 */
export const protectMount = async (server: string, mount: Mount): Promise<readonly Mount[]> => {
  if (mount.kind === 'file') return []
  const found = await search(server, mount)
  const places = new Set<string>()
  for (const path of found) {
    const real = await leadsTo(server, mount, path)
    if (real !== null) places.add(real)
  }
  if (places.size > findingLimit)
    throw refused(server, mount, `holds ${places.size} protected files, ${findingLimit} is the most`)
  const guarded = new Set(places)
  for (const place of places)
    for (let folder = dirname(place); folder !== mount.source; folder = dirname(folder)) guarded.add(folder)
  // Sorted, a folder comes before what it holds, so that no later mount covers an earlier one.
  return Promise.all([...guarded].sort().map((path) => guard(mount, path, places.has(path))))
}

const search = async (server: string, mount: Mount): Promise<string[]> => {
  const found: string[] = []
  let level = [mount.source]
  let folders = 0
  let entries = 0
  for (let depth = 0; depth <= searchDepth; depth++) {
    const below: string[] = []
    const isLast = depth === searchDepth
    const searchOne = async (folder: string): Promise<void> => {
      if (++folders > folderLimit) throw tooMany(server, mount)
      let isUnsure = false
      for await (const entry of entriesOf(folder)) {
        if (++entries > entryLimit)
          throw refused(server, mount, `holds more than ${entryLimit} entries to search for protected files`)
        isUnsure ||= entry.isDirectory() && isDoubtful(entry.name)
        if (isProtectedName(entry.name)) found.push(join(folder, entry.name))
        else if (!isLast && entry.isDirectory() && entry.name !== 'node_modules')
          below.push(join(folder, entry.name))
      }
      if (isUnsure && !isLast) expectSearchable(server, mount, folder)
      if (below.length > folderLimit) throw tooMany(server, mount)
    }
    await inLanes(level, foldersAtOnce, searchOne)
    level = below
  }
  return found
}

// A folder whose name is not UTF-8 is another one, or none, by the name that it has as text.
const expectSearchable = (server: string, mount: Mount, folder: string): void => {
  const inexact = inexactName(folder)
  if (inexact !== null) throw refused(server, mount, `holds ${folder}/${inexact}, whose name is not UTF-8`)
}

// A folder that is gone, or closed to this daemon and so to its sandboxes, holds nothing that they could change.
async function* entriesOf(folder: string): AsyncGenerator<Dirent> {
  for (let tries = 1; ; tries++)
    try {
      return yield* await opendir(folder, { bufferSize: entriesAtOnce })
    } catch (error) {
      if (errnoOf(error) === 'EACCES') return
      if (!isMissing(error) || tries === mostTries) throw error
      // On file systems that do not tell the kind of an entry, one that went meanwhile ends the listing of all.
      const isThere = await lstat(folder).then(
        (found) => found.isDirectory(),
        () => false,
      )
      if (!isThere) return
    }
}

const leadsTo = async (server: string, mount: Mount, path: string): Promise<string | null> => {
  if (!(await lstat(path)).isSymbolicLink()) return path
  if (versionControlNames.has(path.slice(path.lastIndexOf('/') + 1)))
    throw refused(server, mount, `holds ${path}, a link in the place of a version-control folder`)
  const real = await realpath(path).catch(() => null)
  return real !== null && real !== mount.source && isWithin(real, mount.source) ? real : null
}

const guard = async (mount: Mount, path: string, isPlace: boolean): Promise<Mount> => {
  const found = await lstat(path, { bigint: true })
  return {
    source: path,
    target: join(mount.target, relative(mount.source, path)),
    access: isPlace ? 'read' : 'write',
    kind: found.isDirectory() ? 'directory' : 'file',
    dev: found.dev,
    ino: found.ino,
    reason: isPlace ? 'the host runs programs from it' : 'holds a protected file in its place',
    origin: 'protected',
  }
}

const tooMany = (server: string, mount: Mount): SallyportError =>
  refused(server, mount, `holds more than ${folderLimit} folders to search for protected files`)

const refused = (server: string, { source, target }: Mount, what: string): SallyportError =>
  new SallyportError(
    'ERR_MOUNT_REFUSED',
    `writable mount of ${source} at ${target} for ${server} ${what}; mount a smaller folder or a scratch copy`,
    { server, source, target },
  )
