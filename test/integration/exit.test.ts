// A daemon that is told to end while something hangs, its own exit or what reads its configuration: it ends all the same, and nothing else does.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, fixture, place, type Place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { processesWith } from '../support/leaks.ts'

/** Node's own exit stands still where a thread of its platform does; this stands still in the same place of ours. */
const hang = `import { isMainThread } from 'node:worker_threads'
if (isMainThread && process.argv.includes('serve')) // and not what reads its configuration
  process.on('exit', () => {
    process.stderr.write('exit hangs\\n')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })
`

interface Hanging {
  readonly process: ChildProcess
  readonly said: () => string
}

async function hanging(at: Place): Promise<Hanging> {
  const path = join(at.folder, 'hang.mjs')
  await writeFile(path, hang)
  const { process: child, client } = await serve(at, { NODE_OPTIONS: `--import=${path}` })
  await client[Symbol.asyncDispose]()
  let said = ''
  child.stderr?.on('data', (text: Buffer) => (said += text.toString()))
  return { process: child, said: () => said }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

test('a daemon that hangs as it exits keeps nobody waiting, and is ended by its guard', async () => {
  await using at = await place()
  const daemon = await hanging(at)
  const bystander = spawn('/usr/bin/sleep', ['987'], { stdio: 'ignore' })
  try {
    daemon.process.kill('SIGTERM')
    await eventually(() => daemon.said().includes('exit hangs'))
    expect(existsSync(join(at.runtimeDir, 'host', 'host.sock'))).toBe(false)
    // Its locks are free: the next one comes up beside what is left of it.
    const next = await serve(at)
    await eventually(() => hasEnded(daemon.process))
    expect(daemon.process.signalCode).toBe('SIGKILL')
    expect(await next.client.call('servers/list', {})).toBeTruthy()
    // One guard: the next daemon's.
    const guards = (): number => processesWith(`guard\0passed\0${at.runtimeDir}`).length
    await eventually(() => guards() === 1)
    expect([hasEnded(bystander), hasEnded(next.process)]).toEqual([false, false])
    await next.client[Symbol.asyncDispose]()
    next.process.kill('SIGTERM')
    await once(next.process, 'exit')
    // Whose own exit does not hang: it says how it went, and nobody kills it.
    expect(next.process.exitCode).toBe(0)
  } finally {
    bystander.kill('SIGKILL')
  }
})

test('a second signal ends a daemon on its way down, even where it would hang as it exits', async () => {
  const stop = { eof_ms: 100, term_ms: 15_000 }
  await using at = await place(configOf({ stubborn: fixture('ignore-sigterm', { stop }) }))
  const daemon = await hanging(at)
  await using client = await at.connect()
  await client.call('servers/start', { server: 'stubborn' })
  daemon.process.kill('SIGTERM')
  await eventually(() => daemon.said().includes('daemon ends'))
  daemon.process.kill('SIGTERM')
  await eventually(() => hasEnded(daemon.process))
  expect(daemon.process.signalCode).toBe('SIGTERM')
  expect(daemon.said()).not.toContain('exit hangs')
  // Its guard cleans up after it, as after any death.
  await eventually(() => processesWith(`${at.folder}/`).length === 0)
  expect(existsSync(join(at.runtimeDir, 'host', 'host.sock'))).toBe(false)
})

test.each(['as it starts', 'at a reload'])(
  'a daemon that is told to end while its configuration is read, %s, and never will be, ends, and nobody reads on',
  async (when) => {
    await using at = await place()
    const [path, flag] = [join(at.folder, 'halt.mjs'), join(at.folder, 'halted')]
    await writeFile(
      path,
      `import { existsSync } from 'node:fs'
if (process.argv[1].includes('load-child') && existsSync(${JSON.stringify(flag)}))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
`,
    )
    const env = { NODE_OPTIONS: `--import=${path}` }
    const begun = when === 'at a reload' ? await serve(at, env) : null
    await begun?.client[Symbol.asyncDispose]()
    await writeFile(flag, '')
    const daemon = begun?.process ?? at.start(['serve'], env)
    if (begun !== null) daemon.kill('SIGHUP')
    const readers = (): readonly number[] => processesWith(`"home":"${at.folder}"`)
    try {
      await eventually(() => readers().length === 1)
      daemon.kill('SIGTERM')
      await eventually(() => hasEnded(daemon))
      expect(daemon.exitCode).toBe(0)
      await eventually(() => readers().length === 0)
    } finally {
      for (const pid of readers()) process.kill(pid, 'SIGKILL')
    }
  },
)

test.each(['for nobody', 'for a call', 'for a reload'])(
  'a daemon that is told to end while it reads code, %s, reads no further',
  async (who) => {
    // Of holes, which cost no disk: 4 GiB are read for seconds on any machine.
    const [small, big] = [4096, 4 * 1024 ** 3]
    const code = { package: { source: 'code', target: '/app' } }
    await using at = await place(configOf({ one: fixture('echo', code), other: fixture('echo', code) }))
    const hole = join(at.folder, 'code', 'hole')
    await mkdir(join(at.folder, 'code'), { mode: 0o755 })
    for (const path of [join(at.folder, 'code', 'echo.mjs'), hole]) await writeFile(path, '')
    await truncate(hole, who === 'for a reload' ? small : big)
    const { process: daemon, client } = await serve(at)
    if (who === 'for a call') void client.call('servers/start', { server: 'other' }).catch(() => null)
    if (who === 'for a reload') {
      const pinned = async (): Promise<unknown> =>
        (await client.call('servers/get', { server: 'other' })).package_digest
      await eventually(async () => (await pinned()) !== null)
      await truncate(hole, big)
      daemon.kill('SIGHUP')
    }
    let readBytes = 0
    const isBeyond = async (bytes: number): Promise<boolean> => {
      const io = await readFile(`/proc/${daemon.pid}/io`, 'utf8').catch(() => '')
      readBytes = Math.max(readBytes, Number(/^rchar: (\d+)/m.exec(io)?.[1] ?? 0))
      return readBytes > bytes
    }
    await eventually(() => isBeyond(big / 32)) // it reads it: all else that it reads is a tenth of that
    daemon.kill('SIGTERM')
    await eventually(async () => (await isBeyond(big)) || hasEnded(daemon))
    await eventually(() => hasEnded(daemon))
    await client[Symbol.asyncDispose]()
    expect({ status: daemon.exitCode, isRead: readBytes > big / 2 }).toEqual({ status: 0, isRead: false })
  },
)
