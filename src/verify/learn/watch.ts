// Watching a server at work, run after run, until it asks for nothing more that it may be shown.
import { constants } from 'node:fs'
import { open, realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { ProfileSettings } from '../../schema/settings.ts'
import { type Place, type Ran, runObserved, type RunOf } from './confine.ts'
import type { Drive } from './drive.ts'
import { filesApart, missingOf } from './grants.ts'
import type { Observation } from './observation.ts'
import type { LearnOptions } from './options.ts'
import { codeOf, type View } from './view.ts'

const mostRounds = 12
const room = { memoryBytes: 4_294_967_296, pids: 512, openFiles: 8192, tmpBytes: 268_435_456 } as const

/** The last run, which had everything that it could be shown. */
export interface Watched {
  readonly ran: Ran
  readonly observation: Observation
}

/** Runs again while the last run asked for something that can be shown. */
export const watchUntilAllIsShown = async (
  place: Place,
  view: View,
  options: LearnOptions,
  drive: Drive,
): Promise<Watched> => {
  const { onProgress = () => undefined } = options
  for (let round = 1; ; round++) {
    onProgress(`observed, run ${round}: ${view.shown.length} paths of the host are shown`)
    const watched = await runObserved(place, observed(view, options, drive))
    const missing = missingOf(watched.observation)
    let isNew = false
    for (const folder of crowded(missing)) if (await view.show(folder, 'asked')) isNew = true
    for (const seen of missing) if (await offer(view, seen)) isNew = true
    if (!isNew || round === mostRounds) return watched
  }
}

/** Folders of which more files were asked for than are granted one by one. */
const crowded = (missing: Observation['paths']): readonly string[] => {
  const read = new Set(missing.filter(({ use }) => use === 'read').map(({ path }) => path))
  return [...Map.groupBy(read, dirname)].flatMap(([folder, files]) =>
    files.length > filesApart ? [folder] : [],
  )
}

/** A folder that was only looked at is not shown: its being there is no use, and what is in it nobody asked for. */
const offer = async (view: View, { path, use }: Observation['paths'][number]): Promise<boolean> => {
  const denied = view.whyDenied(path)
  if (denied !== null) {
    view.refuse(path, denied)
    return false
  }
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
  return use === 'look' && isFolder ? false : view.show(path, 'asked')
}

/** What stands on the command line, in the drive, or was offered. */
export const showNamed = async (
  view: View,
  { args, read, drive }: LearnOptions,
  command: string,
): Promise<void> => {
  const isScript = command.startsWith('/') && (await startsAsScript(command))
  const [script = ''] = args
  for (const path of isScript ? [command] : [script]) {
    const found = path.startsWith('/') ? await stat(path).catch(() => null) : null
    if (found?.isFile() !== true) continue
    for (const file of new Set([path, await realpath(path)])) await showCode(view, file)
  }
  for (const path of [...read, ...args, ...drive.texts])
    if (path.startsWith('/')) await view.show(resolve(path), 'named')
}

const showCode = async (view: View, file: string): Promise<void> => {
  if (!(await view.show(await codeOf(file), 'code'))) await view.show(file, 'code')
}

const startsAsScript = async (path: string): Promise<boolean> => {
  // What is no regular file may have nobody at its other end, ever; the launch refuses it by name
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null)
  if (file === null || !(await file.stat()).isFile()) return false
  const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0)
  return buffer.toString('latin1') === '#!'
}

/** The widest that an observed run gets: what the view shows, room to breathe, and a door through which only `allow` leads. */
export const observed = (view: View, options: LearnOptions, drive: Drive): RunOf => ({
  profile: 'offline',
  directory: '/nonexistent',
  drive,
  alter: (offline): ProfileSettings => ({
    ...offline,
    name: 'learning',
    filesystem: {
      ...offline.filesystem,
      read: [
        ...offline.filesystem.read,
        ...view.shown.map(({ path }) => ({ path, reason: 'it is learned' })),
      ],
      write: options.write.map((path) => ({ path, reason: 'it is learned' })),
      tmpBytes: room.tmpBytes,
    },
    network:
      options.network === 'none' ? { mode: 'none', allow: [] } : { mode: 'allowlist', allow: options.allow },
    environment: { pass: options.pass, set: options.set, override: {} },
    limits: {
      ...offline.limits,
      memoryBytes: room.memoryBytes,
      pids: room.pids,
      openFiles: room.openFiles,
      cpu: 4,
    },
  }),
})
