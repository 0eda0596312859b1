// `sallyport run -- CMD`: one server, confined, on this process's own stdio, with no daemon and no configuration.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { configOf, main, place } from '../support/daemon.ts'
import type { Place, Ran } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { processesWith } from '../support/leaks.ts'
import { clockStood } from '../support/clock-stood.ts'

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))
const say = (id: number, method: string, params: object = {}): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`
const hello = say(0, 'initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'host', version: '1' },
})

const echo = [
  '--profile',
  'workspace-read',
  '--mount',
  `${fixtures}:/app`,
  '--',
  process.execPath,
  '/app/echo.mjs',
]

/** Without a configuration anywhere: the person at the terminal is the operator. */
const bare = (at: Place): Record<string, string> => ({ SALLYPORT_CONFIG: '', HOME: at.folder })

async function talk(
  at: Place,
  args: readonly string[],
  lines: string,
  env = bare(at),
): Promise<Ran & { answers: unknown[] }> {
  const child = at.start(['run', ...args], env)
  const said = { stdout: '', stderr: '' }
  child.stdout?.on('data', (bytes: Buffer) => (said.stdout += bytes.toString()))
  child.stderr?.on('data', (bytes: Buffer) => (said.stderr += bytes.toString()))
  const closed = once(child, 'close')
  child.stdin?.on('error', () => undefined).write(lines)
  // A host that goes away is not answered any more, however quick it was.
  const hasAll = (): boolean => said.stdout.split('\n').length > lines.split('\n').length - 1
  await eventually(() => child.exitCode !== null || hasAll())
  child.stdin?.end()
  const [status] = (await closed) as [number]
  const ran = { ...said, status }
  const answers = ran.stdout
    .split('\n')
    .filter(Boolean)
    .map((line): unknown => JSON.parse(line))
  return { ...ran, answers }
}

it('answers its host though nobody takes what it says on stderr', async () => {
  await using at = await place()
  const full = openSync('/dev/full', 'w')
  const args = ['run', '--profile', 'workspace-read', '--mount', `${fixtures}:/app`, '--', process.execPath]
  const child = spawn(process.execPath, [main, ...args, '/app/echo.mjs'], {
    env: { ...at.env, ...bare(at) },
    cwd: at.folder,
    stdio: ['pipe', 'pipe', full],
  })
  closeSync(full)
  const closed = once(child, 'close')
  let said = ''
  child.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()))
  child.stdin?.on('error', () => undefined).write(hello)
  await eventually(() => child.exitCode !== null || said.endsWith('\n'))
  child.stdin?.end()
  await closed
  expect(said).toContain('"serverInfo"')
})

it('ends by the ladder, with its calls on record, once nobody takes what it says', async () => {
  await using at = await place()
  const full = openSync('/dev/full', 'w')
  const args = ['run', '--profile', 'workspace-read', '--mount', `${fixtures}:/app`, '--', process.execPath]
  const start = (script: string, stdout: 'pipe' | number) =>
    spawn(process.execPath, [main, ...args, `/app/${script}.mjs`], {
      env: { ...at.env, ...bare(at) },
      cwd: at.folder,
      stdio: ['pipe', stdout, 'pipe'],
    })
  for (const [script, method, isFull, status, words] of [
    ['echo', 'tools/call', false, 0, ''],
    ['says-goodbye', 'ping', false, 7, 'the host closed its end, and it exited with status 7'],
    ['echo', 'tools/call', true, 1, 'stdout: cannot be written (ENOSPC)'],
  ] as const) {
    const child = start(script, isFull ? full : 'pipe')
    let told = ''
    child.stderr?.on('data', (bytes: Buffer) => (told += bytes.toString()))
    const closed = once(child, 'close')
    child.stdin?.on('error', () => undefined).write(hello)
    if (child.stdout !== null) {
      await once(child.stdout, 'data')
      child.stdout.destroy()
    }
    child.stdin?.write(say(1, method, { name: 'echo', arguments: {} }))
    expect({ script, isFull, ended: await closed }).toEqual({ script, isFull, ended: [status, null] })
    expect(told).toContain(words)
  }
  closeSync(full)
  const journals = (await runsOf(at)).map((run) =>
    readFile(join(at.stateDir, 'runs', run, '00000001.jsonl'), 'utf8'),
  )
  const all = (await Promise.all(journals)).join('')
  expect(all.split('"type":"call.outcome"')).toHaveLength(all.split('"type":"call.intent"').length)
  expect(all).toContain('"outcome":"result"')
})

it('runs a server of this machine without any set-up, and says how it is confined', async () => {
  await using at = await place()
  const child = at.start(['run', ...echo], bare(at))
  child.stdin?.write(hello)
  const [line] = await once(child.stdout ?? child, 'data')
  expect(JSON.parse(String(line))).toMatchObject({ id: 0, result: { serverInfo: { name: 'echo' } } })
  const ended = once(child, 'exit')
  child.stdin?.end()
  expect(await ended).toEqual([0, null])
  expect(await readdir(at.stateDir)).toEqual(['daemons', 'journal.key', 'programs.json', 'runs'])
})

it.each([
  ['a folder', []],
  ['a folder and a host', ['--egress', 'api.example.test:443']],
])('needs no profile for a script with %s, since whoever names them is the operator', async (_, more) => {
  await using at = await place()
  const command = ['--', process.execPath, '/app/echo.mjs']
  const { status, answers } = await talk(at, [...more, '--mount', `${fixtures}:/app`, ...command], hello)
  expect(answers).toMatchObject([{ id: 0, result: { serverInfo: { name: 'echo' } } }])
  expect(status).toBe(0)
})

it('tells whoever runs it where the server was not let out to', async () => {
  await using at = await place()
  const asked = say(1, 'tools/call', { name: 'resolve_names', arguments: { names: ['other.example.test'] } })
  const way = ['--egress', 'api.example.test:443', '--mount', `${fixtures}:/app`]
  const { stderr } = await talk(at, [...way, '--', process.execPath, '/app/hostile.mjs'], hello + asked)
  expect(stderr).toMatch(/"host":"other\.example\.test".*"reason":"name-not-listed".*"msg":"egress\/refused"/)
})

it('mounts nothing beyond the profile that was named', async () => {
  await using at = await place()
  const mount = ['--mount', `${fixtures}:/app`]
  const refused = await talk(at, ['--profile', 'offline', ...mount, '--', 'cat'], hello)
  expect(refused).toMatchObject({ status: 7, stderr: expect.stringContaining('ERR_PROFILE_EXCEEDED') })
})

it('says of a script that the sandbox does not see how it would', async () => {
  await using at = await place()
  const script = join(fixtures, 'echo.mjs')
  const { status, stderr } = await talk(at, ['--', process.execPath, script], hello)
  expect(stderr).toContain(`--mount ${fixtures}:/app makes it /app/echo.mjs`)
  expect(status).not.toBe(0)
})

it.each(['/proc/self/status', '/proc/version', '/bin/cat', '/etc/hosts'])(
  'says of %s, which the sandbox has too or nothing shows, no way to mount it',
  async (path) => {
    await using at = await place()
    const { status, stderr } = await talk(at, ['--', 'test', '-e', path], '')
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.not.stringContaining('--mount') })
  },
)

it.each([
  ['nope', 8, 'nope is in none of the folders of command_path (/usr/local/bin, /usr/bin); install it'],
  ['/usr', 2, '/usr is not a regular file; give the path of the program itself'],
  ['false', 1, 'the host closed its end, and it exited with status 1'],
  ['true', 0, 'running true'],
])('runs %s for a host that says nothing, too, and tells how that went', async (program, status, told) => {
  await using at = await place()
  expect(await at.run(['run', '--', program], { env: bare(at) })).toEqual({
    status,
    stdout: '',
    stderr: expect.stringContaining(told),
  })
})

it('obeys a configuration where there is one: its commands, its rules', async () => {
  await using at = await place(configOf({}, { allowed_commands: ['cat'] }))
  const { status, stderr } = await talk(at, ['--', 'node', '/app/echo.mjs'], hello, {})
  expect(status).toBe(2)
  expect(stderr).toContain('allowed_commands')
})

it('never takes the profile from the folder that it is run in', async () => {
  await using at = await place()
  await mkdir(join(at.folder, 'profiles'))
  await writeFile(join(at.folder, 'profiles', 'offline.yaml'), 'version: 1\n')
  const child = at.start(
    ['run', '--profile', 'offline', '--mount', `${fixtures}:/app`, '--', 'cat'],
    bare(at),
  )
  child.stdin?.end(hello)
  const said = once(child.stderr ?? child, 'data')
  expect((await once(child, 'exit'))[0]).toBe(7)
  expect(String(await said)).not.toContain(at.folder)
})

it('refuses code in the arguments of an interpreter, even the operator’s', async () => {
  await using at = await place()
  const { status, stdout, stderr } = await talk(at, ['--', process.execPath, '-e', 'console.log(1)'], hello)
  expect(stderr).toContain('-e')
  expect(`${status}${stdout}`).not.toContain('console')
  expect(status).toBe(2)
})

it('a bad mount is a usage error that shows the right form', async () => {
  await using at = await place()
  const { status, stderr } = await talk(at, ['--mount', 'here', '--', 'cat'], '')
  expect(status).toBe(7)
  expect(stderr).toContain('SOURCE:TARGET')
})

it('goes on beside others that start and end with the same state', async () => {
  await using at = await place()
  for (let round = 0; round < 3; round++) {
    const all = await Promise.all(Array.from({ length: 12 }, () => talk(at, echo, hello)))
    expect(all.filter(({ status }) => status !== 0).map(({ stderr }) => stderr)).toEqual([])
    for (const { answers } of all) expect(answers).toMatchObject([{ result: { serverInfo: {} } }])
  }
})

it('leaves nothing when it is killed', async () => {
  await using at = await place()
  const child = at.start(['run', ...echo], bare(at))
  child.stdin?.write(hello)
  await once(child.stdout ?? child, 'data')
  child.kill('SIGKILL')
  await eventually(() => processesWith(at.folder).length === 0, 8000)
})

const runsOf = async (at: Place): Promise<readonly string[]> =>
  (await readdir(join(at.stateDir, 'runs'))).filter((name) => !name.includes('.'))

it('keeps the journal of each run, which can be verified, and lets go of those that keep_days says are old', async () => {
  const entry = { allowed_commands: ['cat'] }
  await using at = await place(configOf({}, entry))
  const run = async (): Promise<string> => {
    const before = await runsOf(at).catch((): readonly string[] => [])
    await talk(at, ['--', 'cat'], hello, {})
    return (await runsOf(at)).find((name) => !before.includes(name)) ?? ''
  }
  const [old, busy, young] = [await run(), 'd-busy', 'd-young']
  const runs = join(at.stateDir, 'runs')
  const age = async (name: string, days: number): Promise<void> => {
    const folder = join(runs, name)
    const when = Date.now() / 1000 - days * 86_400
    for (const path of [...(await readdir(folder)).map((file) => join(folder, file)), folder])
      await utimes(path, when, when)
  }
  for (const name of [busy, young]) await cp(join(runs, old), join(runs, name), { recursive: true })
  for (const name of [old, busy]) await age(name, 9)
  await age(young, 1)
  // What a run that is not over has, however long it was silent.
  await writeFile(join(at.stateDir, 'daemons', `${busy}.json`), '{}')
  const forEver = await run()
  expect((await runsOf(at)).toSorted()).toEqual([old, busy, young, forEver].toSorted())
  const { status, stdout } = await at.run(['audit', 'verify', '--run', old, '--json'])
  const { seq, hash } = (JSON.parse(stdout) as { head: { seq: number; hash: string } }).head
  expect([status, seq > 0]).toEqual([0, true])

  await writeFile(at.config, JSON.stringify(configOf({}, { ...entry, journal: { keep_days: 3 } })))
  const unsure = await run() // nobody has seen for how long the clock stands
  expect(await runsOf(at)).toContain(old)
  clockStood(join(at.stateDir, 'clock'))
  const last = await run()
  expect((await runsOf(at)).toSorted()).toEqual([busy, young, forEver, unsure, last].toSorted())
  expect(await readdir(runs)).not.toContain(`${old}.head`)
  const segment = join(runs, last, '00000001.jsonl')
  const records = (await readFile(segment, 'utf8')).trim().split('\n')
  const pruned = records.map((line) => JSON.parse(line)).find(({ type }) => type === 'runs.pruned')
  expect(pruned.body).toMatchObject({ keep_days: 3, runs: [{ run: old, head: `${seq}:${hash}` }] })

  expect((await at.run(['audit', 'verify', '--run', last])).status).toBe(0)
  await writeFile(segment, (await readFile(segment, 'utf8')).replace('"keep_days":3', '"keep_days":4'))
  expect((await at.run(['audit', 'verify', '--run', last])).status).toBe(4)
  expect((await at.run(['audit', 'verify', '--run', old])).stderr).toContain('ERR_RECORD_NOT_FOUND')
  expect((await at.run(['audit', 'verify', '--run', '../journal'])).status).toBe(7)
})
