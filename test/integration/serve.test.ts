// `sallyport serve`: one daemon to a folder, whatever became of the one before, and nothing left after it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { chmod, lstat, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { configOf, daemon, fixture, main, place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { cgroupsOf, descendantsOf, processesWith } from '../support/leaks.ts'
import { sharedDaemon } from '../support/shared-daemon.ts'
import { bodiesOf } from '../support/witness.ts'
import { watching } from '../support/watching.ts'
import { isRoot, nobody, nodeAs } from '../support/user.ts'
import { patienceMs } from '../support/patience.ts'

const mode = async (path: string): Promise<string> => ((await lstat(path)).mode & 0o7777).toString(8)

/** For those who only look at it */
const shared = sharedDaemon(configOf({}))

describe('a daemon', () => {
  it('refuses to share a state directory, names who has it, and may have it once that one was killed', async () => {
    await using first = await daemon()
    const elsewhere = { SALLYPORT_RUNTIME_DIR: join(first.folder, 'other-run') }
    const second = await first.run(['serve'], { env: elsewhere })
    expect(second.status).toBe(1)
    expect(second.stderr).toContain(
      `daemon ${first.process.pid}, which serves ${first.runtimeDir}, already keeps its journal in ${first.stateDir}`,
    )
    first.process.kill('SIGKILL')
    first.start(['serve'], elsewhere)
    await eventually(async () => (await first.run(['ps'], { env: elsewhere })).status === 0)
    expect((await first.run(['audit', 'verify'], { env: elsewhere })).status).toBe(0)
  })

  it('refuses to be the second on a runtime directory, and names the first', async () => {
    const first = await shared.living()
    const second = await first.run(['serve'])
    expect(second.status).toBe(1)
    expect(second.stderr).toContain(`daemon ${first.process.pid} already serves`)
    expect(await first.client.call('servers/list', {})).toEqual({ servers: [] })
  })

  it.each([
    ['serve', '--state'],
    ['serve', '--runtime'],
    ['serve --background', '--state'],
  ])(
    'refuses by name a folder that can’t be made (%s %s), and is not busy for ever',
    async (verb, option) => {
      await using at = await place()
      const { status, stderr } = await at.run([...verb.split(' '), option, '/proc/no-such-process/a/b'])
      expect(stderr).toContain('/proc/no-such-process')
      expect(stderr).toContain('cannot be made')
      expect({ status, isNamed: stderr.includes('(ERR_RUNTIME_UNSAFE)') }).toEqual({
        status: 7,
        isNamed: true,
      })
    },
  )

  it('starts cleanly after one that was killed, and nothing of that one is left', async () => {
    await using at = await place(configOf({ echo: fixture('echo') }))
    expect((await at.run(['serve', '--background'])).status).toBe(0)
    const before = await at.connect('operator')
    await before.call('servers/start', { server: 'echo' })
    const { daemon: id, pid } = before.hello
    expect(descendantsOf(pid).length).toBeGreaterThan(1)
    process.kill(pid, 'SIGKILL')
    await before[Symbol.asyncDispose]()
    expect((await at.run(['serve', '--background'])).status).toBe(0)
    await using after = await at.connect('operator')
    expect(after.hello.pid).not.toBe(pid)
    expect(cgroupsOf(id)).toEqual([])
    expect(await after.call('servers/start', { server: 'echo' })).toMatchObject({ state: 'ready' })
  })

  it('has the variables of whoever starts it in the background, as in the foreground', async () => {
    const env = { WORD: '${env:TEST_WORD}' }
    await using at = await place(configOf({ reader: fixture('reaches-out', { env }) }))
    expect((await at.run(['serve', '--background'], { env: { TEST_WORD: 'gate' } })).status).toBe(0)
    await using client = await at.connect('operator')
    const asked = { server: 'reader', tool: 'variable', arguments: { name: 'WORD' } }
    expect(await client.call('tools/call', asked)).toMatchObject({
      data: { structuredContent: { value: 'gate' } },
    })
  })

  it('takes the configuration of whoever starts it in the background from the folder that they are in', async () => {
    await using at = await place()
    const starting = at.start(['serve', '--background', '--config', 'sallyport.yaml'])
    expect(await once(starting, 'exit')).toEqual([0, null])
    await using client = await at.connect()
    expect(await client.call('servers/list', {})).toEqual({ servers: [] })
  })

  it('ends with 0 on SIGTERM, with its servers, its sockets, its record and its groups', async () => {
    await using at = await daemon(configOf({ echo: fixture('echo'), stubborn: fixture('ignore-sigterm') }))
    for (const server of ['echo', 'stubborn']) await at.client.call('servers/start', { server })
    const { daemon: id, pid } = at.client.hello
    const below = descendantsOf(pid).map((child) => child.pid)
    const guards = processesWith(`guard\0passed\0${at.runtimeDir}`)
    expect(guards).toHaveLength(1)
    const ended = once(at.process, 'exit')
    at.process.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    const isLeft = (child: number): boolean => descendantsOf(child).length > 0 || isAlive(child)
    expect(below.filter((child) => !guards.includes(child) && isLeft(child))).toEqual([])
    // The guard stays until the daemon is gone, and ends then.
    await eventually(() => !guards.some(isLeft))
    expect(cgroupsOf(id)).toEqual([])
    expect(await readdir(join(at.runtimeDir, 'host'))).toEqual([])
    expect(await readdir(join(at.runtimeDir, 'operator'))).toEqual([])
  })

  it('waits, within the ladder, for the answers of what was sent, and refuses at once what was not', async () => {
    const rules = [
      { permission: 'mcp:asks:*', action: 'ask' },
      { permission: 'mcp:*:*', action: 'allow' },
    ]
    const server = (more: object = {}): object =>
      fixture('answers-at-end', { stop: { eof_ms: 10_000 }, ...more })
    const servers = { one: server(), own: server({ instance: 'call' }), asks: server() }
    await using at = await daemon(configOf(servers, { rules }))
    await using host = await at.connect('host')
    await using operator = await at.connect('operator')
    await using _watch = await watching(operator, undefined, { mayEnd: true })
    const call = (of: string) => host.call('tools/call', { server: of, tool: 'work', arguments: {} })
    const calls = [call('one'), call('own'), call('asks')] as const
    const settled = Promise.allSettled(calls)
    for (const server of ['one', 'own'])
      await eventually(
        async () => (await operator.call('servers/logs', { server, lines: 1 })).lines.length > 0,
      )
    await eventually(async () => (await operator.call('approvals/list', {})).pending.length === 1)
    const ended = once(at.process, 'exit')
    at.process.kill('SIGTERM')
    expect(await settled).toMatchObject([
      { value: { type: 'output' } },
      { value: { type: 'output' } },
      { reason: { code: 'ERR_DAEMON_UNAVAILABLE' } },
    ])
    expect(await ended).toEqual([0, null])
    expect(bodiesOf(at.stateDir, 'call.outcome')).toMatchObject([
      { outcome: 'result' },
      { outcome: 'result' },
    ])
  })

  it('starts and sends nothing for calls that were still being read', async () => {
    const slow = fixture('ignore-eof', { stop: { eof_ms: 1500, term_ms: 0 } })
    await using at = await daemon(configOf({ slow, echo: fixture('echo') }))
    await at.client.call('servers/start', { server: 'slow' }) // whose end takes longer than a start
    await using host = await at.connect('host')
    const text = 'x'.repeat(300_000)
    const call = () => host.call('tools/call', { server: 'echo', tool: 'echo', arguments: { text } })
    const settled = Promise.allSettled(Array.from({ length: 60 }, call))
    await delay(5)
    const ended = once(at.process, 'exit')
    at.process.kill('SIGTERM')
    expect((await settled).map(({ status }) => status)).not.toContain('fulfilled')
    expect(await ended).toEqual([0, null])
  })

  it('answers all, and ends with 0, where its log can not be written', async () => {
    await using at = await place(configOf({ echo: fixture('echo') }))
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [main, 'serve'], { env: at.env, stdio: ['ignore', 'ignore', full] })
    closeSync(full)
    try {
      await using operator = await eventually(() => at.connect('operator').catch(() => null))
      const within = { signal: AbortSignal.timeout(patienceMs) }
      expect(await operator.call('daemon/reload', {}, within)).toMatchObject({ unchanged: ['echo'] })
      await writeFile(at.config, 'servers: [')
      await expect(operator.call('daemon/reload', {}, within)).rejects.toMatchObject({
        code: 'ERR_CONFIG_SYNTAX',
      })
      await expect(operator.call('servers/start', { server: 'echo' }, within)).resolves.toMatchObject({
        state: 'ready',
      })
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      expect(await ended).toEqual([0, null])
    } finally {
      child.kill('SIGKILL')
    }
  })

  it('ends when its operator says so, and never when a host does', async () => {
    await using at = await daemon()
    await using host = await at.connect('host')
    await expect(host.call('daemon/shutdown', {})).rejects.toMatchObject({ code: 'ERR_NOT_AUTHORISED' })
    const ended = once(at.process, 'exit')
    expect(await at.client.call('daemon/shutdown', { reason: 'test' })).toEqual({ stopping: true })
    expect(await ended).toEqual([0, null])
  })

  it.each(['host', 'operator'])('stands down when its socket is taken away: %s.sock', async (door) => {
    await using at = await daemon()
    const ended = once(at.process, 'exit')
    await rm(join(at.runtimeDir, door, `${door}.sock`))
    expect((await ended)[0]).not.toBe(0)
  })

  it.each(['host', 'operator'])(
    'stands down beside a socket that came in the place of its own: %s.sock',
    async (door) => {
      await using at = await daemon()
      const ended = once(at.process, 'exit')
      const path = join(at.runtimeDir, door, `${door}.sock`)
      const record = join(at.runtimeDir, 'host', 'daemon.json')
      const foreign = createServer()
      foreign.listen(`${path}.new`)
      await once(foreign, 'listening')
      await writeFile(record, '{"id":"another"}')
      await rename(`${path}.new`, path)
      const { ino } = await lstat(path)
      expect((await ended)[0]).not.toBe(0)
      expect((await lstat(path)).ino).toBe(ino)
      expect(await readFile(record, 'utf8')).toBe('{"id":"another"}')
      foreign.close()
      for (const made of [path, record]) await rm(made)
    },
  )

  it('is the only one where its locks are removed, and keeps what is its own', async () => {
    await using at = await daemon()
    const before = await readFile(join(at.runtimeDir, 'host', 'daemon.json'), 'utf8')
    for (const folder of [at.runtimeDir, at.stateDir]) await rm(join(folder, 'daemon.lock'))
    const second = await at.run(['serve'])
    expect(second).toMatchObject({ status: 1, stderr: expect.stringContaining('ERR_DAEMON_RUNNING') })
    expect(await readFile(join(at.runtimeDir, 'host', 'daemon.json'), 'utf8')).toBe(before)
    await using host = await at.connect('host')
    expect(host.hello.daemon).toBe(at.client.hello.daemon)
    expect(await at.client.call('audit/verify', {})).toMatchObject({ ok: true })
  })

  it('makes its folders for itself alone', async () => {
    const at = await shared.living()
    expect(await mode(at.runtimeDir)).toBe('711')
    expect(await mode(join(at.runtimeDir, 'host'))).toBe('700')
    expect(await mode(join(at.runtimeDir, 'operator'))).toBe('700')
    expect(await mode(join(at.runtimeDir, 'host', 'host.sock'))).toBe('600')
    expect(await mode(join(at.runtimeDir, 'operator', 'operator.sock'))).toBe('600')
    expect(await mode(join(at.runtimeDir, 'host', 'daemon.json'))).toBe('600')
    expect(await mode(at.stateDir)).toBe('700')
    const record = JSON.parse(await readFile(join(at.runtimeDir, 'host', 'daemon.json'), 'utf8'))
    expect(record).toEqual({
      id: at.client.hello.daemon,
      version: at.client.hello.version,
      protocol: 'sallyport/1',
      pid: at.process.pid,
      url: `unix:${join(at.runtimeDir, 'host', 'host.sock')}`,
    })
  })

  it('says that hosts of its own uid are not separate from it', async () => {
    const at = await shared.living()
    expect(at.client.hello).toMatchObject({ separation: 'none', runtime_dir: at.runtimeDir })
  })

  it.runIf(isRoot)('answers nobody else, even where the file modes would let them', async () => {
    await using at = await daemon()
    for (const path of ['', 'run/host', 'run/operator']) await chmod(join(at.folder, path), 0o755)
    for (const name of ['host', 'operator']) {
      const path = join(at.runtimeDir, name, `${name}.sock`)
      await chmod(path, 0o666)
      const said = await nodeAs(
        nobody,
        `import { connect } from 'node:net'
         const s = connect(${JSON.stringify(path)})
         s.write('{"jsonrpc":"2.0","id":1,"method":"servers/list"}\\n')
         s.pipe(process.stdout)`,
      )
      expect(JSON.parse(said)).toMatchObject({ id: null, error: { data: { code: 'ERR_NOT_AUTHORISED' } } })
    }
  })
})

describe('a daemon that can not run', () => {
  it('says what is wrong with its configuration and where, with status 7', async () => {
    await using at = await place()
    await writeFile(at.config, 'version: 1\nservrs: {}\n')
    const { status, stderr } = await at.run(['serve'])
    expect(status).toBe(7)
    expect(stderr).toMatch(/sallyport\.yaml:2.*servrs/)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  it('refuses to start where separation is required and is not there', async () => {
    await using at = await place(configOf({}, { require_separation: true }))
    const { status, stderr } = await at.run(['serve'])
    expect(status).toBe(7)
    expect(stderr).toContain('ERR_SEPARATION')
  })

  it('in the background tells its starter why', async () => {
    await using at = await place(configOf({}, { require_separation: true }))
    const { status, stderr } = await at.run(['serve', '--background'])
    expect(status).toBe(7)
    expect(stderr).toContain('require_separation')
  })
})

describe('starting in the background', () => {
  it('gives one daemon however many start at once', async () => {
    await using at = await place()
    const starts = await Promise.all(Array.from({ length: 5 }, () => at.run(['serve', '--background'])))
    await using client = await at.connect()
    for (const { status, stderr } of starts) {
      expect(status).toBe(0)
      // One may come when the daemon of another answers.
      if (stderr !== '')
        expect(stderr).toMatch(new RegExp(`^daemon ${client.hello.pid} already serves .*\n$`))
    }
    await eventually(() => processesWith(`serve\0--runtime\0${at.runtimeDir}`).length === 1)
    expect(processesWith(`serve\0--runtime\0${at.runtimeDir}`)).toEqual([client.hello.pid])
  })

  it('waits for nobody where another daemon keeps its state', async () => {
    const at = await shared.living()
    const elsewhere = join(at.folder, 'elsewhere')
    const asked = performance.now()
    const { status, stderr } = await at.run(['serve', '--background', '--runtime', elsewhere])
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `sallyport: daemon ${at.client.hello.pid}, which serves ${at.runtimeDir}, already keeps its journal in ${at.stateDir}; stop it, or choose another --state (ERR_DAEMON_RUNNING)\n`,
    })
    expect(performance.now() - asked, 'before it gives up on a daemon that starts').toBeLessThan(14_000)
  })

  it('does nothing where a daemon runs, and says so', async () => {
    const at = await shared.living()
    expect(await at.run(['serve', '--background'])).toEqual({
      status: 0,
      stdout: '',
      stderr: `daemon ${at.client.hello.pid} already serves ${at.runtimeDir}; sallyport reload has it read its file again\n`,
    })
    expect(processesWith(`serve\0--runtime\0${at.runtimeDir}`)).toEqual([])
  })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
