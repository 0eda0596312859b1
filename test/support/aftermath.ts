// What must be true once a fault is over, whatever its caller was told: of the journal, of `ps`, and of the machine.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import type { Place } from './daemon.ts'
import { eventually } from './eventually.ts'
import { cgroupsOf, childrenOf, descendantsOf } from './leaks.ts'
import { bodiesOf } from './witness.ts'

/** The folders of a daemon's own */
type Aftermath = Pick<Place, 'runtimeDir' | 'stateDir'>

/** Roles of the daemon's own processes, one of each at most: the last is the launcher of the next sandbox. */
const helpers = ['guard', 'peer', 'outer']

/** What may be in the folders that a daemon has of its own, beside journal, outputs and what stands there for a sandbox. */
const ownFiles = [
  /^run\/(daemon\.lock|(host|operator)(\/\2\.sock)?|host\/daemon\.json|egress)$/,
  /^state\/(daemon\.lock|programs\.json|clock|daemons(\/d-[\w-]+\.json)?)$/,
  /^state\/(journal|outputs)/,
]

/**
 * Waits until each call on record has one end, `ps` shows exactly the sandboxes there are, of those that wait for calls their
 * number, and the daemon has nothing of the machine beside them and its helpers: no process, no control group, no network
 * namespace, no mount, no door, no file. Then the chain of records must hold.
 */
export async function expectAftermath(at: Aftermath, client: Client): Promise<void> {
  const { stateDir } = at
  const { pid, daemon } = client.hello
  await eventually(() => {
    const ends = ['call.outcome', 'call.denied'].flatMap((type) => bodiesOf(stateDir, type))
    const counts = Map.groupBy(ends, (end) => end['call'])
    return bodiesOf(stateDir, 'call.intent').every((intent) => counts.get(intent['call'])?.length === 1)
  })
  await eventually(async () => {
    const [there, { shown, waiting }] = [sandboxesOf(pid), await shownBy(client)]
    expect(there).toEqual(expect.arrayContaining(shown as number[]))
    expect(there.filter((one) => !shown.includes(one))).toHaveLength(waiting)
    expect(strangersOf(pid)).toEqual([])
    expect(cgroupsOf(daemon).filter((group) => !group.endsWith(daemon) && isDeserted(group))).toEqual([])
    expect(heldNetworksOf(pid)).toEqual([])
    expect(linesOf(`/proc/${pid}/mountinfo`).filter((line) => line.includes(`${at.runtimeDir}/`))).toEqual([])
    const inside = there.map((one) => fileOf(`/proc/${one}/mountinfo`)).join('\n')
    expect(doorsOf(at).filter((door) => !inside.includes(`/egress/${door}/`))).toEqual([])
    expect(strayFilesOf(at)).toEqual([])
    return true
  })
  expect(await client.call('audit/verify', {})).toMatchObject({ ok: true })
}

/** PID 1 of every sandbox that a daemon has, ascending. */
const sandboxesOf = (daemon: number): readonly number[] =>
  descendantsOf(daemon)
    .filter(({ name }) => name === 'init')
    .map(({ pid }) => pid)
    .toSorted((a, b) => a - b)

interface Shown {
  /** PID 1 of each sandbox, ascending */
  readonly shown: readonly number[]
  /** How many wait for a call, of which no more is told */
  readonly waiting: number
}

async function shownBy(client: Client): Promise<Shown> {
  const { servers } = await client.call('servers/list', {})
  const views = await Promise.all(servers.map(({ name }) => client.call('servers/get', { server: name })))
  const pids = views.flatMap(({ instances }) => instances.flatMap((one) => one.pid ?? []))
  const waiting = views.reduce((sum, { pool }) => sum + (pool?.waiting ?? 0), 0)
  return { shown: pids.toSorted((a, b) => a - b), waiting }
}

/** Children of a daemon that are neither a helper nor at the head of a sandbox. */
function strangersOf(daemon: number): readonly string[] {
  const missing = new Set(helpers)
  return childrenOf(daemon)
    .filter(({ pid }) => ![pid, ...descendantsOf(pid).map((child) => child.pid)].some((one) => isInit(one)))
    .map(({ pid }) => commandLine(pid))
    .filter((line) => !missing.delete(line.split(' ')[1] ?? ''))
}

/** Network namespaces that a daemon, or what is below it, holds open, and in which nobody of them is. */
function heldNetworksOf(daemon: number): readonly string[] {
  const all = [daemon, ...descendantsOf(daemon).map((child) => child.pid)]
  const lived = new Set(all.map((one) => linkOf(`/proc/${one}/ns/net`)))
  const held = all.flatMap((one) => namesIn(`/proc/${one}/fd`).map((fd) => linkOf(`/proc/${one}/fd/${fd}`)))
  return held.filter((link) => link.startsWith('net:') && !lived.has(link))
}

/** Names of the folders of doors, and of those whose socket somebody still listens on, be its path gone. */
function doorsOf({ runtimeDir }: Aftermath): readonly string[] {
  const doors = join(runtimeDir, 'egress')
  const heard = linesOf('/proc/net/unix').flatMap((line) => line.split(`${doors}/`)[1]?.split('/')[0] ?? [])
  return [...new Set([...namesIn(doors), ...heard])]
}

/** Files and folders of the daemon's own that nobody knows of. */
function strayFilesOf({ runtimeDir, stateDir }: Aftermath): readonly string[] {
  const below = (folder: string, name: string): readonly string[] =>
    namesIn(folder, true).map((path) => `${name}/${path}`)
  return [...below(runtimeDir, 'run'), ...below(stateDir, 'state')].filter(
    (path) => !path.startsWith('run/egress/') && !ownFiles.some((own) => own.test(path)),
  )
}

const isInit = (pid: number): boolean => fileOf(`/proc/${pid}/comm`).trim() === 'init'
const commandLine = (pid: number): string => fileOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
/** Whether nobody is in a group of a sandbox. */
const isDeserted = (group: string): boolean => fileOf(`${group}/cgroup.procs`) === ''

function fileOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // it has just gone
  }
}

const linesOf = (path: string): readonly string[] => fileOf(path).split('\n')

function namesIn(folder: string, recursive = false): readonly string[] {
  try {
    return readdirSync(folder, { recursive, encoding: 'utf8' })
  } catch {
    return [] // it has just gone
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return '' // it has just gone
  }
}
