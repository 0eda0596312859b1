// Learning: what a server was seen to need is in its draft, each grant is needed, and nothing else is there.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { asUser } from '../../support/as-user.ts'
import {
  type Draft,
  learn,
  learnedIn,
  openPackage,
  readsOf,
  triedBy,
  verifiedBriefly,
  verifiedWhereGranted,
} from '../../support/learning.ts'
import { green } from '../../support/verification.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { isRoot } from '../../support/user.ts'
import { patienceMs } from '../../support/patience.ts'

const cli = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

test('a draft has what was used, and without any of it the same calls fail', async () => {
  await using at = await openPackage('needs.mjs')
  const letter = join(at.documents, 'letter.txt')
  const callsFor = (name: string) =>
    [
      ['read', { path: letter }],
      ['variable', { name: 'GREETING' }],
      ['start', { program: '/usr/bin/uname' }],
      ['write', { path: join(at.data, name), text: 'x' }],
    ] as const
  const { draft, proof, observed, verification, text } = await learn({
    args: [at.server],
    calls: callsFor('new'),
    write: [at.data],
    set: { GREETING: 'hello', UNUSED: 'x' },
  })
  expect(proof).toMatchObject({ holds: true, failed: [], differences: [], requests: 5, same: 5 })
  expect(verification).toMatchObject({ verdict: green })
  expect(readsOf(draft)).toEqual([join(at.app, 'mcp.mjs'), at.server, letter].toSorted())
  expect(draft).toMatchObject({
    draft: true,
    extends: 'offline',
    widens: true,
    filesystem: { write: [{ path: at.data }] },
    environment: { pass: [], set: { GREETING: 'hello' } },
  })
  expect([draft.exec, draft.network]).toEqual([undefined, undefined])
  expect(observed.started.at(-1)).toBe('/usr/bin/uname')
  expect(proof.dropped).toEqual(
    expect.arrayContaining([`reading ${join(at.app, 'optional.txt')}`, 'the variable UNUSED']),
  )
  expect(text).not.toContain('two doors')
  expect(await readdir(at.data)).toEqual([])

  const grants = [...readsOf(draft).map((path) => `reading ${path}`), `writing ${at.data}`]
  expect(proof.needed).toEqual([...grants, 'starting programs', 'the variable GREETING'])
  // Not by its own proof: as whoever has the draft runs it.
  const found = await Promise.all(
    [['nothing', draft] as const, ...withoutEach(draft, letter)].map(
      async ([what, profile]) => [what, await failures(profile, at.server, callsFor(what))] as const,
    ),
  )
  expect(Object.fromEntries(found)).toEqual({
    nothing: [],
    letter: ['read'],
    variables: ['variable'],
    starting: ['start'],
    writing: ['write'],
  })
})

/** The draft without each of the grants that the server starts without. */
const withoutEach = (draft: Draft, letter: string): readonly (readonly [string, Draft])[] => {
  const read = draft.filesystem.read?.filter(({ path }) => path !== letter) ?? []
  return [
    ['letter', { ...draft, filesystem: { ...draft.filesystem, read } }],
    ['variables', { ...draft, environment: { pass: [], set: {} } }],
    ['starting', { ...draft, exec: 'none' }],
    ['writing', { ...draft, filesystem: { ...draft.filesystem, write: [] } }],
  ]
}

/** Which of the calls fail under a profile, as `sallyport run` runs it. */
const failures = async (
  draft: Draft,
  server: string,
  calls: readonly (readonly [string, object])[],
): Promise<readonly string[]> => {
  await using home = await tempDir()
  await mkdir(join(home.path, '.config/sallyport/profiles'), { recursive: true })
  const file = join(home.path, '.config/sallyport/profiles/learned.yaml')
  await writeFile(file, stringify(draft), { mode: 0o600 })
  const env = { HOME: home.path, PATH: process.env['PATH'] }
  const ran = promisify(execFile)(
    process.execPath,
    [cli, 'run', '--profile', 'learned', '--', process.execPath, server],
    { env },
  )
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } }
  const say = (message: object): void =>
    void ran.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  ran.child.stdin?.on('error', () => undefined)
  say({ id: 'hello', method: 'initialize', params })
  say({ method: 'notifications/initialized' })
  for (const [id, [name, args]] of calls.entries())
    say({ id, method: 'tools/call', params: { name, arguments: args } })
  let out = ''
  ran.child.stdout?.on('data', (chunk: string) => {
    out += chunk
    if (out.split('\n').length > calls.length + 1) ran.child.stdin?.end()
  })
  const { stdout, stderr } = await ran.catch((error: { stdout: string; stderr: string }) => error)
  const answers = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { id: unknown; result?: object })
  if (!answers.some(({ id, result }) => id === 'hello' && result !== undefined))
    throw new Error(`it did not come up: ${stdout}${stderr}`)
  return calls.flatMap(([name], id) =>
    answers.find((answer) => answer.id === id)?.result === undefined ? [name] : [],
  )
}

test.each([
  ['a folder', 'mkdir'],
  ['a pipe that nobody writes to', 'mkfifo'],
])('%s is no program, and refused by name', async (_what, make) => {
  await using folder = await tempDir()
  const program = join(folder.path, 'program')
  await promisify(execFile)(make, ['-m', '0755', program])
  const options = { env: { PATH: process.env['PATH'] ?? '', HOME: folder.path }, timeout: patienceMs }
  const args = [cli, 'profile', 'learn', '--', program]
  const ran = promisify(execFile)(process.execPath, args, { ...options, killSignal: 'SIGKILL' })
  await expect(ran).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${program} is not a regular file; give the path of the program itself`),
  })
})

test('nothing is proven of a server that did not answer while it was watched', async () => {
  await using at = await openPackage('echo.mjs')
  const ends = join(at.path, 'ends.mjs')
  await writeFile(ends, "process.stdin.once('data', () => process.exit(1))\n", { mode: 0o644 })
  const { draft, proof, text, verification } = await learn({ args: [ends], read: [ends] })
  expect(proof).toMatchObject({ holds: false, needed: [], failed: ['initialize: none'] })
  expect(proof.differences).toEqual([
    'initialize: no answer when it was observed, so nothing was learned of it',
  ])
  expect(verification).toBe('the draft is not proven')
  expect(text).toContain('# Not proven with ')
  expect(draft.draft).toBe(true)
})

test('a server that asks for keys, sockets, other processes and addresses gets none, and nothing leaves', async () => {
  await using at = await openPackage('hostile.mjs')
  const home = join(at.path, 'home')
  await mkdir(join(home, '.ssh'), { recursive: true })
  await writeFile(join(home, '.ssh', 'id_ed25519'), 'sesame-key', { mode: 0o644 })
  await writeFile(join(home, 'diary.txt'), 'sesame-diary', { mode: 0o644 })
  let connections = 0
  const listener = createServer(() => connections++).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const key = join(home, '.ssh', 'id_ed25519')
  const paths = [
    key,
    '/home/user/.ssh/id_ed25519',
    join(home, 'diary.txt'),
    '/proc/1/environ',
    '/etc/shadow',
    '/run/docker.sock',
    '/var/run/docker.sock',
  ]
  const targets = [
    { host: '169.254.169.254', port: 80 },
    { host: '127.0.0.1', port },
    { host: 'exfil.example.com', port: 443 },
    { host: '/run/docker.sock', port: 0 },
  ]
  const script = JSON.stringify(paths)
  // By a file of its own, so that nobody has named these paths on a command line or in a drive.
  await writeFile(
    at.server.replace('hostile', 'greedy'),
    `import { readFileSync } from 'node:fs'\nfor (const path of ${script}) try { process.stderr.write(readFileSync(path)) } catch {}\nawait import('./hostile.mjs')\n`,
  )
  try {
    const learned = await learn({
      ...verifiedWhereGranted,
      args: [at.server.replace('hostile', 'greedy')],
      home,
      calls: [
        ['connect', { targets }],
        ['resolve_names', { names: ['exfil.example.com'] }],
      ],
    })
    const { draft, withheld, text, verification } = learned
    expect(connections).toBe(0)
    expect(JSON.stringify(learned)).not.toContain('sesame')
    expect(readsOf(draft).every((path) => path.startsWith(at.app))).toBe(true)
    expect([draft.network, draft.filesystem.write]).toEqual([undefined, undefined])
    const asked = withheld.map(({ path }) => path)
    expect(asked).toEqual(expect.arrayContaining([...paths, '169.254.169.254:80', 'exfil.example.com']))
    expect(text).toContain(`#   ${key}: ssh and signing keys, denied by a mandatory rule`)
    expect(verification).toMatchObject({ verdict: green })
    expect(triedBy(verification)).toEqual(verifiedWhereGranted.controls)
  } finally {
    listener.close()
  }
})

test('a host that a person allows is reached and granted, and no other', async () => {
  await using at = await openPackage('needs.mjs')
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello'
  const listener = createServer((socket) =>
    socket.on('error', () => undefined).once('data', () => socket.end(answer)),
  )
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const grant = { port, address: '127.0.0.1', private: true, reason: 'a test' }
  try {
    const { draft, proof, withheld, verification } = await learn({
      ...verifiedBriefly,
      args: [at.server],
      calls: [
        ['fetch', { url: `http://granted.example.test:${port}/` }],
        ['fetch', { url: 'http://other.example.test/' }],
      ],
      allow: [
        { ...grant, host: 'granted.example.test' },
        { ...grant, host: 'unused.example.test' },
      ],
    })
    expect(proof).toMatchObject({ holds: true, failed: ['tools/call fetch: error'] })
    expect(verification).toMatchObject({ verdict: green, probes: [{ control: 'user-mapping' }] })
    expect(draft.network?.mode).toBe('allowlist')
    expect(draft.network?.allow.map(({ host }) => host)).toEqual(['granted.example.test'])
    expect(withheld.map(({ path }) => path)).toContain('other.example.test:80')
  } finally {
    listener.close()
  }
})

test('a package that pnpm laid out is granted with the links by which its packages find each other', async () => {
  await using at = await openPackage('needs.mjs')
  const modules = join(at.path, 'project', 'node_modules')
  const own = join(modules, '.pnpm', 'needs@1.0.0', 'node_modules')
  await mkdir(own, { recursive: true })
  await cp(at.app, join(own, 'needs'), { recursive: true })
  await symlink(join('.pnpm', 'needs@1.0.0', 'node_modules', 'needs'), join(modules, 'needs'))
  const starter = join(modules, '.bin', 'needs')
  await mkdir(join(modules, '.bin'))
  const line = `exec '${process.execPath}' "$(dirname "$0")/../needs/needs.mjs"`
  await writeFile(starter, `#!/bin/sh\n${line}\n`)
  await chmod(starter, 0o755)
  const { draft, proof } = await learn({ ...verifiedBriefly, command: starter, read: [process.execPath] })
  expect(proof).toMatchObject({ holds: true, failed: [], differences: [] })
  expect(readsOf(draft)).toContain(modules)
})

test('an ordinary user learns the same', async () => {
  await using at = await openPackage('needs.mjs')
  const calls = [['read', { path: join(at.documents, 'letter.txt') }]]
  const asked = { ...verifiedWhereGranted, args: [at.server], calls }
  const stdout = isRoot ? await asUser('support/run-learn.ts', JSON.stringify(asked)) : null
  const { draft, proof, verification } = stdout === null ? await learn(asked as never) : learnedIn(stdout)
  expect(proof).toMatchObject({ holds: true, failed: [] })
  expect(verification).toMatchObject({ verdict: green })
  expect(triedBy(verification)).toEqual(verifiedWhereGranted.controls)
  expect(readsOf(draft)).toContain(join(at.documents, 'letter.txt'))
})

test.runIf(isRoot)('root learns by code that is in a folder of its own, such as its home', async () => {
  await using at = await openPackage('echo.mjs')
  await using home = await tempDir()
  const clone = join(home.path, 'clone')
  await mkdir(clone)
  await chmod(home.path, 0o700)
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  const asked = JSON.stringify({ ...verifiedBriefly, args: [at.server], calls: [['echo', { text: 'x' }]] })
  const there = 'mount --bind "$0" "$1" && exec "$2" "$1/test/support/run-learn.ts" "$3"'
  const { stdout } = await promisify(execFile)(
    'unshare',
    ['--mount', 'sh', '-c', there, root, clone, process.execPath, asked],
    { maxBuffer: 1 << 24 },
  )
  expect(learnedIn(stdout)).toMatchObject({ proof: { holds: true, failed: [] } })
})
