// Sandboxes that wait for calls: what a call gets, that it can't tell one from a new one, and how much memory they hold.
import { chmod, cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { attached } from '../support/attached.ts'
import { configOf, daemon, fixture, place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { poolOf, run, runs, waitingInits, waits, write } from '../support/pool.ts'

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

describe('a call', () => {
  let at: TestDaemon
  beforeAll(async () => {
    at = await daemon(configOf({ runs: runs(), cold: runs({ pool: { size: 0 } }) }))
  })
  afterAll(() => at[Symbol.asyncDispose]())

  test('takes a sandbox that waited with nothing in it, another takes its place, and none is used twice', async () => {
    expect(await poolOf(at)).toMatchObject({ size: 2, waiting: 0 })
    await at.client.call('servers/start', { server: 'runs' })
    const full = await waits(at, 2)
    expect(full).toMatchObject({ drawn: 0, missed: 0, lost: 0, reason: null })
    expect(full.memory_bytes).toBeGreaterThanOrEqual(2 * 1_048_576)
    const before = await eventually(() => {
      const inits = waitingInits(at)
      return inits.length === 2 && inits
    })
    const marks = 'cat /tmp/mark 2>&1; echo was here > /tmp/mark'
    for (const drawn of [1, 2, 3]) {
      expect(await run(at, marks)).toMatch(/No such file/)
      expect(await waits(at, 2)).toMatchObject({ drawn, missed: 0 })
    }
    expect(waitingInits(at).filter((pid) => before.includes(pid))).toEqual([])
  })

  test('in a session takes one that waited, too, and the others go on waiting', async () => {
    await using own = await daemon(configOf({ runs: runs() }))
    await using host = await attached(own, 'runs')
    await waits(own, 2)
    const before = await eventually(() => {
      const inits = waitingInits(own)
      return inits.length === 2 && inits
    })
    expect(await host.call('run', { script: 'echo ran' })).toMatchObject({
      result: { structuredContent: { stdout: 'ran\n' } },
    })
    expect(await waits(own, 2)).toMatchObject({ drawn: 1, missed: 0 })
    await eventually(() => waitingInits(own).length === 2)
    expect(waitingInits(own).filter((pid) => before.includes(pid))).toHaveLength(1)
  })

  test('a sandbox that waited is to its server what a new one is', async () => {
    const describes = [
      'env | sort',
      'cat /proc/1/status /proc/self/limits | grep -vE "ctxt|Vm|Rss|Huge|Threads|SigQ|Pid:|Tgid|Cpus|Mems|Speculation"',
      "cut -d' ' -f5- /proc/self/mountinfo | sed -E 's/[0-9]+:[0-9]+//'",
      'tr "\\0" " " < /proc/$PPID/cmdline; for fd in /proc/$PPID/fd/*; do readlink $fd | sed "s/:.*//"; done | sort -u',
      'stat -c "%A %u %g %n" / /* /tmp/.* /home/user/.* /dev/* /sallyport/*; cat /proc/sys/user/max_*',
    ].join('; ')
    const { drawn } = await waits(at, 2)
    const anonymous = (text: string): string =>
      text.replaceAll(/\b19\d{8}\b/g, 'UID').replaceAll(/\bgid=\d+/g, 'gid')
    const warm = anonymous(await run(at, describes))
    expect(warm).toBe(anonymous(await run(at, describes, 'cold')))
    expect(warm.split('\n').length).toBeGreaterThan(60)
    expect(await poolOf(at)).toMatchObject({ drawn: drawn + 1, missed: 0 })
    expect(await poolOf(at, 'cold')).toMatchObject({ size: 0, waiting: 0, drawn: 0 })
  })
})

describe('what was planned when a sandbox was built is looked at when it is drawn', () => {
  test('code that changed since is refused, and code that is back runs', async () => {
    await using at = await place()
    const code = join(at.folder, 'code')
    await cp(fixtures, code, { recursive: true })
    await write(at, configOf({ runs: runs({ package: { source: code, target: '/app' } }) }))
    const running = await serve(at)
    await using client = running.client
    await client.call('servers/start', { server: 'runs' })
    await waits({ client }, 2)
    await writeFile(join(code, 'extra.mjs'), '')
    await expect(run({ client }, 'echo ran')).rejects.toThrow(/package.*changed/)
    expect(await poolOf({ client })).toMatchObject({ waiting: 0 })
    await rm(join(code, 'extra.mjs'))
    expect(await run({ client }, 'echo ran')).toBe('ran\n')
  })

  test('code that changed since is refused to a session, too, and ends no daemon', async () => {
    await using at = await place()
    const code = join(at.folder, 'code')
    await cp(fixtures, code, { recursive: true })
    await write(at, configOf({ runs: runs({ package: { source: code, target: '/app' } }) }))
    const { client, process: child } = await serve(at)
    await using _ = client
    await using host = await attached(at, 'runs')
    await waits({ client }, 2)
    await writeFile(join(code, 'extra.mjs'), '')
    const { error } = await host.call('run', { script: 'echo ran' })
    expect(error).toMatchObject({ data: { code: 'ERR_PACKAGE_CHANGED' } })
    await rm(join(code, 'extra.mjs'))
    expect(await host.call('run', { script: 'echo ran' })).toMatchObject({
      result: { structuredContent: { stdout: 'ran\n' } },
    })
    expect(child.exitCode).toBe(null)
  })

  test('what must not be written to is not, though it is there only since the sandbox was', async () => {
    await using at = await place()
    const work = join(at.folder, 'work')
    await mkdir(work)
    await chmod(work, 0o777)
    const mounts = [{ source: work, target: '/project', access: 'write', reason: 'a test' }]
    const mine = process.getuid?.() === 0 ? { run_as: 1000 } : {}
    await write(at, configOf({ runs: runs({ profile: 'workspace-write', mounts, ...mine }) }))
    const running = await serve(at)
    await using client = running.client
    await client.call('servers/start', { server: 'runs' })
    await waits({ client }, 2)
    await mkdir(join(work, '.git'))
    await writeFile(join(work, '.git', 'config'), '[core]\n')
    for (const made of ['.git', '.git/config']) await chmod(join(work, made), 0o777)
    const said = await run({ client }, 'echo evil >> /project/.git/config; cat /project/.git/config')
    expect(said).toMatch(/Read-only file system/)
    expect(said).not.toMatch(/^evil/m)
    expect(await poolOf({ client })).toMatchObject({ drawn: 0 }) // a new pool, of sandboxes that are as they should be
    await waits({ client }, 2)
    expect(await run({ client }, 'echo evil >> /project/.git/config')).toMatch(/Read-only file system/)
    expect(await poolOf({ client })).toMatchObject({ drawn: 1 })
  })
})

test('all that wait hold no more than pool.memory_bytes, and the server used longest ago gives way', async () => {
  const mebibyte = 1_048_576
  const servers = { runs: runs(), other: runs() }
  await using at = await daemon(configOf(servers))
  await at.client.call('servers/start', { server: 'runs' })
  const { memory_bytes: two } = await waits(at, 2)
  await write(at, configOf(servers, { pool: { memory_bytes: Math.round(two * 1.25) } }))
  await at.client.call('daemon/reload', {})
  await at.client.call('servers/start', { server: 'other' })
  await waits(at, 2, 'other')
  expect(await poolOf(at)).toMatchObject({ waiting: 0 })
  expect(waitingInits(at)).toHaveLength(2)
  expect(await run(at, 'echo ran')).toBe('ran\n')
  await waits(at, 2)
  expect(await poolOf(at, 'other')).toMatchObject({ waiting: 0 })
  await write(at, configOf(servers, { pool: { memory_bytes: mebibyte / 2 } }))
  expect(await poolOf(at)).toMatchObject({ waiting: 2 })
  const none = { waiting: 0, reason: expect.stringMatching(/memory_bytes/) as string }
  await at.client.call('daemon/reload', {})
  expect(await poolOf(at)).toMatchObject(none)
  await run(at, 'true')
  await run(at, 'true')
  await run(at, 'true')
  expect(await poolOf(at)).toMatchObject(none)
  await write(at, configOf(servers))
  await at.client.call('daemon/reload', {})
  await waits(at, 2) // though nobody has called since
  expect(await poolOf(at)).toMatchObject({ reason: null })
})

test('who calls again once answered waits for a process that is slow to end, and is not told to wait', async () => {
  const stop = { eof_ms: 100, term_ms: 6000 }
  await using at = await daemon(
    configOf({ stays: fixture('ignore-sigterm', { instance: 'call', pool: { size: 0 }, stop }) }),
  )
  for (let n = 1; n <= 10; n += 1) {
    const called = await at.client.call('tools/call', { server: 'stays', tool: 'echo', arguments: { n } })
    expect(called, `call ${n}`).toMatchObject({ type: 'output', data: { structuredContent: { n } } })
  }
})

test('a pool where calls have no processes of their own is refused, with what mends it', async () => {
  await using at = await place(configOf({ runs: fixture('runs', { pool: { size: 3 } }) }))
  const { status, stderr } = await at.run(['serve'])
  expect(status).toBe(7)
  expect(stderr).toMatch(/servers\.runs\.pool.*pool with instance: session.*say instance: call/)
})
