// Files that make whoever executes them more than they were: those that the host has, and one that a verification by root makes.
import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdir, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { newInstanceId } from '../../lib/ids.ts'
import { errnoOf } from '../../lib/missing.ts'
import { findProbesBinary } from '../../sandbox/init-binary.ts'
import type { Janitor } from './janitor.ts'
import { ampleMs } from './patience.ts'
import { parents, placeProgram } from './runnable.ts'

const nobody = 65_534

/** Programs that hosts have with a setuid bit, and which do nothing when they are asked for their help. */
const usual = ['su', 'mount', 'umount', 'passwd', 'chsh', 'gpasswd', 'sudo', 'fusermount3']

/** Returns the paths of those that are root's and have it here. */
export const setuidPrograms = async (): Promise<readonly string[]> => {
  const found = usual.map(async (name) => {
    const path = `/usr/bin/${name}`
    const status = await stat(path).catch(() => null)
    return status !== null && status.uid === 0 && (status.mode & 0o4001) === 0o4001 ? [path] : []
  })
  return (await Promise.all(found)).flat()
}

/** Programs that hosts have with capabilities of their files, and which do nothing when they are asked for their help. */
const usuallyCapable = [
  '/usr/bin/ping',
  '/usr/bin/arping',
  '/usr/bin/fping',
  '/usr/bin/mtr-packet',
  '/usr/bin/clockdiff',
  '/usr/bin/dumpcap',
  '/usr/libexec/gstreamer-1.0/gst-ptp-helper',
  ...['x86_64', 'aarch64'].map(
    (arch) => `/usr/lib/${arch}-linux-gnu/gstreamer1.0/gstreamer-1.0/gst-ptp-helper`,
  ),
]

/** A file with a capability that its program never uses. Gone when it is disposed of. */
export interface Exhibit extends AsyncDisposable {
  /** One that was made by root, else one that the host has; null where there is neither */
  readonly capable: string | null
  /** Why there is neither; or that it could not be found out */
  readonly incapable: { readonly because: string; readonly isUntried: boolean }
}

/** A program that could not be started, or did not come to its end: it says nothing of what it would have had. */
class Untried extends Error {}
const unknown = 'whether a file gives capabilities here is not known'

/** Makes the file where any user may execute it, on a file system that honours what it gives. */
export const makeExhibit = async (janitor: Pick<Janitor, 'takes'>): Promise<Exhibit> => {
  const folders: string[] = []
  const takeAway = async (): Promise<void> => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
  }
  const isRoot = process.geteuid?.() === 0
  const because = isRoot
    ? `in none of ${parents().join(' and ')} a file gives whoever executes it the capability that it has`
    : 'none of the usual programs here has capabilities, and only root can give a file any'
  try {
    const capable = await (isRoot ? plant : find)(janitor, folders)
    return { capable, incapable: { because, isUntried: false }, [Symbol.asyncDispose]: takeAway }
  } catch (error) {
    if (error instanceof Untried)
      return {
        capable: null,
        incapable: { because: error.message, isUntried: true },
        [Symbol.asyncDispose]: takeAway,
      }
    await takeAway()
    throw error
  }
}

const makeFolder = async (
  parent: string,
  janitor: Pick<Janitor, 'takes'>,
  folders: string[],
): Promise<string> => {
  // Init stages through no link.
  const folder = join(await realpath(parent), `sallyport-verify-capable-${newInstanceId()}`)
  await janitor.takes(`tree /${folder.slice(1)}`)
  await mkdir(folder)
  folders.push(folder)
  return folder
}

const plant = async (janitor: Pick<Janitor, 'takes'>, folders: string[]): Promise<string | null> => {
  const probes = await findProbesBinary()
  for (const parent of parents()) {
    const folder = await makeFolder(parent, janitor, folders)
    const capable = join(folder, 'capable')
    await copyFile(probes, capable)
    await Promise.all([folder, capable].map((path) => chmod(path, 0o755)))
    await ask(capable, 0, `give-capability\t${capable}`)
    const status = await ask(capable, nobody, 'text\t/proc/self/status')
    if (/CapPrm:\\u0009\d*[1-9a-f]/.test(status)) return capable
  }
  return null
}

/** Whoever starts such a program is told of what it had by its status. */
const find = async (janitor: Pick<Janitor, 'takes'>, folders: string[]): Promise<string | null> => {
  const probes = await placeProgram((parent) => makeFolder(parent, janitor, folders))
  for (const path of usuallyCapable) {
    if ((await stat(path).catch(() => null)) === null) continue
    const status = await ask(probes, null, `exec-gain\t${path}\t--help`)
    if (/CapPrm:\\u0009\d*[1-9a-f]/.test(status)) return path
  }
  return null
}

// What it says, and nothing where a folder above is shut to that user.
const ask = async (program: string, id: number | null, line: string): Promise<string> => {
  const list = join(dirname(program), 'asked')
  await writeFile(list, `${line}\n`, { mode: 0o644 })
  const drop = id === null ? {} : { uid: id, gid: id }
  const running = promisify(execFile)(program, [list], { ...drop, env: {}, timeout: ampleMs })
  running.child.stdin?.on('error', () => undefined).end()
  return running.then(
    ({ stdout }) => {
      const [, outcome] = /"outcome":"(late|killed|no-effect|unknown)"/.exec(stdout) ?? []
      if (outcome !== undefined) throw new Untried(`${unknown}: ${outcome}`)
      return stdout
    },
    (error: unknown) => {
      if (errnoOf(error) === 'EACCES') return ''
      throw new Untried(`${unknown}: ${String(error).split('\n', 1).join('')}`, { cause: error })
    },
  )
}
