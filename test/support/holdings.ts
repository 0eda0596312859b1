// What a daemon holds of the machine, for proofs that many lives of servers leave it with what it had.
import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../src/client/client.ts'
import type { Place } from './daemon.ts'
import { eventually } from './eventually.ts'
import { cgroupsOf, descendantsOf } from './leaks.ts'
import { livingAt } from './living.ts'

const collects = fileURLToPath(new URL('../chaos/collects.mjs', import.meta.url))

/** What a container engine mounts as it starts its first container, beside a test */
const ofEngine = /\/docker[^ /]*\/netns\//

/** Everything by name, so that a test shows what there is too much of. */
export interface Holdings {
  /** Kind of descriptor -> how many */
  readonly descriptors: Readonly<Record<string, number>>
  readonly children: readonly string[]
  readonly groups: readonly string[]
  /** Network namespaces of the daemon, of what is below it, and of what either holds open */
  readonly networks: readonly string[]
  /** Mounts in the daemon's namespace that keep a namespace, or lie in the place */
  readonly mounts: readonly string[]
  /** Of the machine's Unix sockets those that have a path in the place */
  readonly sockets: readonly string[]
  /** Files of the runtime and state directories and of TMPDIR, the journal's and kept outputs apart */
  readonly files: readonly string[]
}

export function holdingsOf(at: Place, { pid, daemon }: Client['hello']): Holdings {
  const below = descendantsOf(pid)
  const links = [pid, ...below.map((child) => child.pid)].flatMap((one) => linksOf(`/proc/${one}/fd`))
  const networks = [pid, ...below.map((child) => child.pid)].map((one) => linkOf(`/proc/${one}/ns/net`))
  const own = linksOf(`/proc/${pid}/fd`).map((link) => link.replace(/(?<=^\w+:)\[\d+\]$/, ''))
  return {
    descriptors: Object.fromEntries(
      [...Map.groupBy(own, (kind) => kind)].map(([kind, all]) => [kind, all.length]),
    ),
    children: below.map(({ name }) => name).toSorted(),
    groups: cgroupsOf(daemon),
    networks: [...new Set([...networks, ...links].filter((link) => link.startsWith('net:')))],
    mounts: readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
      .split('\n')
      .filter((line) => line.includes(' - nsfs ') || line.includes(at.folder))
      .filter((line) => !ofEngine.test(line)),
    sockets: [...new Set(readFileSync('/proc/net/unix', 'utf8').match(/(?<= )\/.*$/gm))]
      .filter((path) => path.startsWith(`${at.folder}/`))
      .toSorted(),
    files: [at.runtimeDir, at.stateDir, scratchOf(at)]
      .flatMap((folder) =>
        readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
      )
      .filter((path) => !/\/state\/(journal|outputs)\//.test(path))
      .toSorted(),
  }
}

/** Where the daemon puts what is temporary; to be made first. */
export const scratchOf = ({ folder }: Place): string => join(folder, 'tmp')

/** Variables with which a daemon tells what lives in it, and has a folder of its own for what is temporary. */
export const observed = (at: Place): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--expose-gc --import ${collects}`,
  SALLYPORT_CHAOS_LIVING: join(at.folder, 'living'),
  TMPDIR: scratchOf(at),
})

/** What may be added to the memory of a daemon however much it has done, MiB: its young generation, code, its ring of events */
export const flat = { residentMib: 40, livingMib: 6 }

/** What is resident of a process, MiB. */
export const residentMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

/** What lives in such a daemon once all garbage is collected, MiB: the least of three readings, since buffers go a little later. */
export async function livingMib(at: Place, pid: number): Promise<number> {
  const path = join(at.folder, 'living')
  const readings: number[] = []
  for (let left = 3; left > 0; left--) {
    rmSync(path, { force: true })
    process.kill(pid, 'SIGUSR2')
    readings.push((await eventually(() => livingAt(path))).bytes / 1024 ** 2)
    await delay(100)
  }
  return Math.min(...readings)
}

const linksOf = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder).map((name) => linkOf(join(folder, name)))
  } catch {
    return [] // it has just ended
  }
}

const linkOf = (path: string): string => {
  try {
    return readlinkSync(path)
  } catch {
    return '' // it has just gone
  }
}
