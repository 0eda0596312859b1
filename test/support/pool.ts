// What tests of sandboxes that wait for calls ask of a daemon.
import { writeFile } from 'node:fs/promises'
import type { PoolView } from '../../src/rpc/pool-view.ts'
import { fixture, type Place, type TestDaemon } from './daemon.ts'
import { eventually } from './eventually.ts'
import { descendantsOf } from './leaks.ts'

/** A server that runs scripts, each in a process of its call. */
export const runs = (more: object = {}): object => fixture('runs', { instance: 'call', ...more })

/** Gives the place another configuration. */
export const write = (at: Place, config: object): Promise<void> =>
  writeFile(at.config, JSON.stringify(config))

/** Somebody who can ask it. */
type At = Pick<TestDaemon, 'client'>

/** What the daemon says of a server's pool. */
export const poolOf = async ({ client }: At, server = 'runs'): Promise<PoolView> => {
  const { pool } = await client.call('servers/get', { server })
  if (pool === null) throw new Error(`${server} has no pool`)
  return pool
}

/** Resolves once so many wait. */
export const waits = (at: At, count: number, server = 'runs'): Promise<PoolView> =>
  eventually(async () => {
    const pool = await poolOf(at, server)
    return pool.waiting === count && pool
  })

/** Runs a script in a process of its own, and returns what it wrote. */
export async function run({ client }: At, script: string, server = 'runs'): Promise<string> {
  const { data, error_text } = await client.call('tools/call', { server, tool: 'run', arguments: { script } })
  if (error_text !== null) throw new Error(error_text)
  const { structuredContent } = data as { structuredContent: { stdout: string; stderr: string } }
  return structuredContent.stdout + structuredContent.stderr
}

/** PID 1 of each sandbox in which nothing runs, but a relay where there is one. */
export const waitingInits = (at: TestDaemon): readonly number[] => {
  const below = descendantsOf(at.process.pid ?? 0).filter(({ name }) => name === 'bwrap')
  return below.flatMap(({ pid }) => {
    const inside = descendantsOf(pid)
    return inside.some(({ name }) => !['bwrap', 'init', 'egress'].includes(name))
      ? []
      : inside.slice(0, 1).map((it) => it.pid)
  })
}
