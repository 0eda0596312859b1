// What must be true once a fault is over, whatever its caller was told: of the journal, of `ps`, and of the machine.
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import type { Place } from './daemon.ts'
import { eventually } from './eventually.ts'
import { cgroupsOf, childrenOf, descendantsOf } from './leaks.ts'
import { bodiesOf } from './witness.ts'

/** Roles of the daemon's own processes, one of each at most: the last is the launcher of the next sandbox. */
const helpers = ['guard', 'peer', 'outer']

/**
 * Waits until each call on record has one end, `ps` shows exactly the sandboxes there are, and the daemon has no process and
 * no control group beside them and its helpers; then the chain of records must hold. Of servers without a pool.
 */
export async function expectAftermath({ stateDir }: Pick<Place, 'stateDir'>, client: Client): Promise<void> {
  const { pid, daemon } = client.hello
  await eventually(() => {
    const ends = ['call.outcome', 'call.denied'].flatMap((type) => bodiesOf(stateDir, type))
    const counts = Map.groupBy(ends, (end) => end['call'])
    return bodiesOf(stateDir, 'call.intent').every((intent) => counts.get(intent['call'])?.length === 1)
  })
  await eventually(async () => {
    expect(sandboxesOf(pid)).toEqual(await shownBy(client))
    expect(strangersOf(pid)).toEqual([])
    expect(cgroupsOf(daemon).filter((group) => !group.endsWith(daemon) && isDeserted(group))).toEqual([])
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

async function shownBy(client: Client): Promise<readonly number[]> {
  const { servers } = await client.call('servers/list', {})
  const views = await Promise.all(servers.map(({ name }) => client.call('servers/get', { server: name })))
  const pids = views.flatMap(({ instances }) => instances.flatMap((one) => one.pid ?? []))
  return pids.toSorted((a, b) => a - b)
}

/** Children of a daemon that are neither a helper nor at the head of a sandbox. */
function strangersOf(daemon: number): readonly string[] {
  const missing = new Set(helpers)
  return childrenOf(daemon)
    .filter(({ pid }) => ![pid, ...descendantsOf(pid).map((child) => child.pid)].some((one) => isInit(one)))
    .map(({ pid }) => commandLine(pid))
    .filter((line) => !missing.delete(line.split(' ')[1] ?? ''))
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
