// A reload whose files are not read, by whoever stands still: who needs nothing of them does not wait, and nobody reads on for a daemon
// that is gone.
import { once } from 'node:events'
import { readlinkSync, realpathSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { configOf, fixture, place, type Place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { processesWith } from '../support/leaks.ts'

const readers = (at: Place): readonly number[] => processesWith(`"home":"${at.folder}"`)

/** Before that is executed, nothing ends it together with its daemon. */
const isNode = (pid: number): boolean => readlinkSync(`/proc/${pid}/exe`) === realpathSync(process.execPath)

/** The one process that reads, once it is there and what it will be. */
async function theReader(at: Place): Promise<number> {
  const [reader] = await eventually(() => {
    const found = readers(at)
    return found.length === 1 && found.every(isNode) && found
  })
  if (reader === undefined) throw new Error('it has ended')
  return reader
}

/** What has the process that reads stand still at its first file, from when the returned file is there; it hears and is heard. */
async function halting(at: Place): Promise<{ env: Readonly<Record<string, string>>; flag: string }> {
  const [path, flag] = [join(at.folder, 'halt.mjs'), join(at.folder, 'halted')]
  await writeFile(
    path,
    `import { existsSync } from 'node:fs'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
if (process.argv[1].includes('load-child') && existsSync(${JSON.stringify(flag)})) {
  files.open = () => new Promise(() => setInterval(() => {}, 1000))
  syncBuiltinESMExports()
}
`,
  )
  return { env: { NODE_OPTIONS: `--import=${path}` }, flag }
}

test('while the process that reads is stopped, servers are added and removed', async () => {
  await using at = await place(configOf({}))
  const { env, flag } = await halting(at)
  const { client } = await serve(at, env)
  await using operator = client
  const { package: code, ...entry } = fixture('echo', {
    version: '1',
    justification: 'a test',
    tags: ['x'],
  }) as Record<string, unknown>
  const add = (server: string) => operator.call('servers/add', { server, entry: { ...entry, package: code } })
  await add('early')
  await writeFile(flag, '')
  const reloading = operator.call('daemon/reload', {}).catch((error: unknown) => error)
  const reader = await theReader(at)
  process.kill(reader, 'SIGSTOP')
  try {
    expect(await operator.call('servers/remove', { server: 'early' })).toMatchObject({ removed: 'early' })
    await add('late')
    expect(readers(at)).toEqual([reader])
  } finally {
    process.kill(reader, 'SIGKILL')
  }
  expect(await reloading).toMatchObject({ code: 'ERR_SHORTAGE' })
  expect((await operator.call('servers/list', {})).servers.map(({ name }) => name)).toEqual(['late'])
})

test('a daemon that is killed while its configuration is read leaves nobody who reads on', async () => {
  await using at = await place(configOf({}))
  const { env, flag } = await halting(at)
  const { process: daemon, client } = await serve(at, env)
  await client[Symbol.asyncDispose]()
  await writeFile(flag, '')
  daemon.kill('SIGHUP')
  const reader = await theReader(at)
  const ended = once(daemon, 'exit')
  daemon.kill('SIGKILL')
  await ended
  try {
    await eventually(() => readers(at).length === 0)
  } finally {
    if (readers(at).length > 0) process.kill(reader, 'SIGKILL')
  }
})

test('a process that reads and stands still ends with its daemon, and nothing that it knew is left', async () => {
  await using at = await place(configOf({}))
  const daemon = at.start(['serve'])
  const said = text(daemon.stderr ?? Readable.from([]))
  const reader = await theReader(at)
  process.kill(reader, 'SIGSTOP')
  const ended = once(daemon, 'exit')
  daemon.kill('SIGKILL')
  await ended
  try {
    await eventually(() => readers(at).length === 0)
  } finally {
    if (readers(at).length > 0) process.kill(reader, 'SIGKILL')
  }
  expect(await said).toBe('')
})
