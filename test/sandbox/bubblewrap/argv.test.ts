// The arguments are what the files in golden/argv say, and the sandbox that they build shows no more than that.
import { describe, expect, test } from 'vitest'
import type { InstanceId } from '../../../src/lib/ids.ts'
import { type BubblewrapArgument, bubblewrapArguments } from '../../../src/sandbox/bubblewrap/argv.ts'
import { etcFiles } from '../../../src/sandbox/mounts/etc.ts'
import type { Mount, SandboxSpec } from '../../../src/sandbox/spec.ts'
import { asUser } from '../../support/as-user.ts'
import { isRoot } from '../../support/init-sandbox.ts'
import { viewOf } from '../../support/show-view.ts'

const mount = (source: string, target: string, more: Partial<Mount> = {}): Mount => ({
  source,
  target,
  access: 'read',
  kind: 'directory',
  dev: 1n,
  ino: 2n,
  reason: 'a test',
  origin: 'server',
  ...more,
})

const spec = (name: string, more: Partial<SandboxSpec> = {}): SandboxSpec => ({
  server: name,
  instance: 'i-1' as InstanceId,
  profile: name,
  program: { path: '/usr/bin/cat', argv: ['cat'] },
  cwd: '/home/user',
  environment: { SECRET: { value: 'never an argument', origin: 'server' } },
  hostUid: 1000,
  hostGid: 1000,
  mounts: [mount('/usr', '/usr', { origin: 'profile' })],
  links: [{ path: '/bin', text: 'usr/bin' }],
  files: etcFiles,
  network: { mode: 'none' },
  hasCredentialFiles: false,
  exec: 'any',
  syscalls: { base: 'strict', allow: [], deny: [] },
  limits: {
    memoryBytes: 536_870_912,
    pids: 64,
    cpu: 1,
    openFiles: 1024,
    fileBytes: 1_073_741_824,
    tmpBytes: 67_108_864,
    enforcement: { memory: 'best-effort', cpu: 'best-effort', pids: 'required', files: 'required' },
  },
  stop: { eofMs: 500, termMs: 3000 },
  ...more,
})

const write = { access: 'write' } as const
const door = mount('/run/sallyport/egress/i-1/door', '/sallyport/egress', {
  kind: 'socket',
  origin: 'supervisor',
})
const specs: readonly SandboxSpec[] = [
  spec('offline'),
  spec('workspace-write', {
    mounts: [
      mount('/usr', '/usr', { origin: 'profile' }),
      mount('/srv/code', '/app', { origin: 'package' }),
      mount('/srv/node_modules', '/node_modules', { origin: 'package' }),
      mount('/home/u/a project', '/workspace', write),
      mount('/opt/node/bin/node', '/sallyport/bin/node', { origin: 'program', kind: 'file' }),
      mount('/home/u/a project/sub', '/workspace/sub', { origin: 'protected', ...write }),
      mount('/home/u/a project/sub/.git', '/workspace/sub/.git', { origin: 'protected' }),
    ],
    limits: { ...spec('').limits, tmpBytes: 1_048_576 },
  }),
  spec('allowlisted-egress', {
    network: {
      mode: 'allowlist',
      door,
      grants: [{ host: 'a.example', port: 443 }],
      proxyPort: 3128,
      pool: 0,
    },
  }),
]

const build = (it: SandboxSpec): readonly BubblewrapArgument[] =>
  bubblewrapArguments(it, {
    stagedSource: ({ source }) => `/staged${source}`,
    initPath: '/staged/sallyport-init',
    seccomp: Buffer.from('the filter'),
  })

const shown = (argument: BubblewrapArgument): string =>
  typeof argument === 'string' ? argument : `<${JSON.stringify(Buffer.from(argument.data).toString())}>`

describe('the arguments', () => {
  test.each(specs)('of $server are the ones in its golden file', async (it) => {
    const mounts = it.mounts.map(
      ({ source, target, access, origin }) => `${access} ${target} <- ${source} (${origin})`,
    )
    const text = [it.profile, ...mounts, '----------', ...build(it).map(shown), ''].join('\n')
    await expect(text).toMatchFileSnapshot(`../../golden/argv/${it.server}.golden`)
  })

  test('hold nothing of the environment or the server’s own arguments', () => {
    const it = spec('offline', { program: { path: '/usr/bin/cat', argv: ['cat', 'hunter2'] } })
    const text = build(it).map(shown).join('\n')
    expect(text).not.toMatch(/hunter2|SECRET|never an argument/)
  })

  test('that end early start nothing: init comes last, behind a root that is read-only already', () => {
    for (const it of specs) {
      const all = build(it)
      expect(all.slice(-5)).toEqual([
        '--remount-ro',
        '/',
        '--ro-bind',
        '/staged/sallyport-init',
        '/sallyport/init',
      ])
      expect(all.slice(0, -3)).not.toContain('/staged/sallyport-init')
      // Until then there is a file without content and without any permission.
      const place = all.indexOf('/sallyport/init')
      expect(all.slice(place - 4, place).map(shown)).toEqual(['--perms', '0000', '--file', '<"">'])
    }
  })

  test('never nest a user namespace, share one, or trust the race of die-with-parent', () => {
    for (const it of specs) {
      const all = build(it)
      for (const flag of ['user', 'pid', 'ipc', 'uts', 'cgroup', 'net'])
        expect(all).toContain(`--unshare-${flag}`)
      for (const flag of [
        '--dev',
        '--disable-userns',
        '--die-with-parent',
        '--share-net',
        '--setenv',
        '--dev-bind-try',
      ])
        expect(all).not.toContain(flag)
    }
  })
})

const sectionsOf = (view: string): ReadonlyMap<string, readonly string[]> =>
  new Map(
    view
      .split(/^== /m)
      .slice(1)
      .map((section) => section.trimEnd().split('\n'))
      .map(([name = '', ...lines]) => [name, lines]),
  )

const expectNoMore = (view: string): void => {
  const sections = sectionsOf(view)
  const own = ['app', 'dev', 'etc', 'home', 'proc', 'sallyport', 'tmp', 'usr', 'workspace']
  const root = new Set([...own, 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'])
  expect(sections.get('root')?.filter((name) => !root.has(name))).toEqual([])
  expect(sections.get('root')).toEqual(expect.arrayContaining(own))
  expect(sections.get('etc')?.filter((name) => name !== 'ld.so.cache')).toEqual([
    'group',
    'hosts',
    'nsswitch.conf',
    'passwd',
    'resolv.conf',
  ])
  const nodes = ['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', 'zero']
  expect(sections.get('dev')).toEqual(nodes)
  expect(sections.get('sallyport')).toEqual(['init'])
  expect([sections.get('home'), sections.get('tmp'), sections.get('masked')]).toEqual([[], [], []])
  expect(sections.get('env')?.join('').split('\0').sort()).toEqual([
    '',
    'HOME=/home/user',
    'LANG=C.UTF-8',
    'PATH=/usr/local/bin:/usr/bin:/bin',
    'PWD=/home/user',
    'TERM=dumb',
    'TMPDIR=/tmp',
    'USER=user',
  ])
  const mounts = (sections.get('mounts') ?? []).map((line) => ({ line, fields: line.split(' ') }))
  // What a host has mounted among the kernel's settings comes along, below a cover
  const covered = new Set(mounts.map(({ fields: [, parent, , , target] }) => `${parent} ${target}`))
  for (const { line, fields } of mounts) {
    if (covered.has(`${fields[0]} ${fields[4]}`)) continue
    expect(line).toContain('nosuid')
    if (!/ \/dev\/(null|zero|full|random|urandom) /.test(line)) expect(line).toContain('nodev')
  }
  const open = (name: string) =>
    sections.get(name)?.flatMap((line) => (line.endsWith(' open') ? [line.slice(0, -5)] : []))
  expect(open('write')).toEqual(['/workspace', '/tmp', '/home/user', '/dev/shm'])
  expect(open('sysctl')).toEqual([])
  expect(sections.get('sysctl')).toHaveLength(4)
  const ids = sections.get('ids')?.map((line) => line.replace(/\s+/g, ' ').trim())
  expect(ids).toEqual([
    'Uid: 1000 1000 1000 1000',
    'Gid: 1000 1000 1000 1000',
    expect.stringMatching(/^Groups:( 65534| 1000)*$/),
    ...['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}: 0000000000000000`),
    'NoNewPrivs: 1',
    'Seccomp: 2',
  ])
  expect(sections.get('uid_map')?.join('').trim()).toMatch(/^1000\s+[1-9]\d*\s+1$/)
  expect(sections.get('moved')).toEqual(['.git stays', 'deep stays'])
  expect(sections.get('full')?.at(-1)).toBe('16777216')
}

describe('a sandbox', () => {
  test('shows a server its grants, its scratch space and nothing of the host', async () => {
    expectNoMore(await viewOf())
  })

  test.runIf(isRoot)('shows it no more when an ordinary user launches it', async () => {
    expectNoMore(await asUser('support/show-view.ts'))
  })

  test('without its protected mounts has them written and moved, so that the test above can see it', async () => {
    const sections = sectionsOf(await viewOf(({ origin }) => origin !== 'protected'))
    expect(sections.get('write')).toContain('/workspace/.git open')
    expect(sections.get('moved')).toEqual(['.git moved', 'deep moved'])
  })
})
