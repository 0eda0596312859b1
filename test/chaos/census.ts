// What there is on the machine of a run's daemons and their sandboxes, for proofs that nothing is left and nothing grows.
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { cgroupsOf, descendantsOf } from '../support/leaks.ts'
import type { Invariant } from './account.ts'
import type { Containers } from './containers.ts'
import { inGoodTime } from '../support/pace.ts'
import type { Stage } from './stage.ts'

/** What is there of each kind, by name. */
type Census = Readonly<Partial<Record<Invariant, readonly string[]>>>

/** Counts what no daemon may leave; the caller's own processes are not among it. */
async function census(
  stage: Stage,
  before: ReadonlySet<string>,
  containers: Containers | null,
): Promise<Census> {
  const { folder, runtimeDir } = stage.at
  const engines = containers?.processes() ?? new Set()
  const names = [...filesBelow(runtimeDir), ...filesBelow(stage.at.stateDir), ...filesBelow(stage.scratch)]
  return {
    processes: descendantsOf(process.ppid)
      .filter(({ pid }) => pid !== process.pid && !engines.has(pid))
      .map(({ pid, name }) => `${name} (${pid}) ${commandLine(pid)}${standing(pid)}`),
    mounts: mountsBelow(folder).filter((path) => !stage.disks.includes(path)),
    cgroups: cgroupsOf(...stage.daemons),
    sockets: readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .filter((line) => line.includes(`${folder}/`)),
    files: names
      .filter((path) => !before.has(path) && !isAwaited(path))
      .filter((path) => !isJournal(path.slice(stage.at.stateDir.length + 1))),
    containers: (await containers?.ids().catch(unanswered)) ?? [],
  }
}

const unanswered = (error: unknown): readonly string[] => [
  `nobody knows, since the engine does not answer: ${String(error)}`,
]

/** Waits until nothing is left of what there was not `before`, and breaks an invariant for each kind of which something is. */
export async function expectNothing(
  stage: Stage,
  before: ReadonlySet<string>,
  containers: Containers | null,
  patienceMs = 10_000,
): Promise<void> {
  let left: readonly (readonly [string, readonly string[]])[] = []
  const isClean = async (): Promise<boolean> => {
    left = Object.entries(await census(stage, before, containers)).filter(([, names]) => names.length > 0)
    return left.length === 0
  }
  try {
    await inGoodTime(isClean, patienceMs)
  } catch (error) {
    if (left.length === 0) throw error // nobody could look
    for (const [kind, names] of left)
      stage.account.breaks(kind as Invariant, `${names.length}: ${names.slice(0, 8).join('; ')}`)
  }
}

/** Every file below the folders of a daemon that is not running. */
export const filesOf = (stage: Stage): ReadonlySet<string> =>
  new Set([stage.at.runtimeDir, stage.at.stateDir, stage.scratch].flatMap(filesBelow))

/** What a daemon that runs holds. */
export interface Holding {
  /** What each descriptor leads to, numbers left out */
  readonly descriptors: readonly string[]
  readonly residentMib: number
  /** Processes below it, but for one of each kind that helps it as long as it runs */
  readonly others: readonly string[]
}

export function holdingOf(pid: number): Holding {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).flatMap((fd) => leadsTo(`/proc/${pid}/fd/${fd}`)),
    residentMib: Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024),
    others: othersOf(pid),
  }
}

/** Its guard, who asks for the credentials of peers, and the launcher of the next sandbox. */
const helpers = ['guard', 'peer', 'outer']

function othersOf(daemon: number): readonly string[] {
  const missing = new Set(helpers)
  return descendantsOf(daemon)
    .filter(({ pid, name }) => name !== 'sallyport-init' || !missing.delete(argumentsOf(pid)[1] ?? ''))
    .map(({ pid, name }) => `${name} (${pid}) ${commandLine(pid)}`)
}

function leadsTo(descriptor: string): readonly string[] {
  try {
    return [readlinkSync(descriptor).replace(/:\[\d+\]$/, '')]
  } catch {
    return [] // it was closed meanwhile
  }
}

/**
 * Segments, snapshots and evidence, whose names the journal itself accounts for; the folder of folders of containers; and what programs were
 * found to be, which a daemon that is ended sooner than it has read them leaves to the next.
 */
const isJournal = (path: string): boolean =>
  /^(docker|programs\.json|journal\/(\d+\.jsonl|snapshots|snapshots\/\d+\.json|evidence|evidence\/[0-9a-f]{64}))$/.test(
    path,
  )

/** The folder of a killed daemon, which stays for ten minutes where an engine may still make what it was asked for. */
function isAwaited(path: string): boolean {
  const [folder] = /^.*\/docker\/d-[^/]+/.exec(path) ?? []
  const isNote = (name: string): boolean =>
    name.endsWith('.making') && Date.now() - statSync(join(folder ?? '', name)).mtimeMs < 600_000
  return folder !== undefined && readdirSync(folder).some(isNote)
}

function filesBelow(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined)
  } catch {
    return [] // there is none
  }
}

const mountsBelow = (folder: string): readonly string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(`${folder}/`))

/** In which state, in which wait of the kernel's and below whom it is: whether something stopped it, or what it waits for. */
function standing(pid: number): string {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const told = (key: string): string => new RegExp(`^${key}:\\s+(.*)$`, 'm').exec(status)?.[1] ?? '?'
    const where = readFileSync(`/proc/${pid}/wchan`, 'utf8')
    return `[${told('State')}, ${where}, below ${told('PPid')}, pids ${told('NSpid')}]`
  } catch {
    return '[gone]'
  }
}

const commandLine = (pid: number): string => argumentsOf(pid).join(' ').slice(0, 100)

function argumentsOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}
