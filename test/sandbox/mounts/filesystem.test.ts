// A server sees what was granted, and no grant reaches what no configuration may give.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, realpathSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { MountSettings, ProfileSettings } from '../../../src/schema/settings.ts'
import type { DenialFacts } from '../../../src/sandbox/mounts/denials.ts'
import {
  type FilesystemPlan,
  type FilesystemRequest,
  planFilesystem,
} from '../../../src/sandbox/mounts/filesystem.ts'
import type { SandboxUser } from '../../../src/sandbox/mounts/reachable.ts'
import { expectRefusal } from '../../support/refusal.ts'
import { profileOf } from '../../support/settings.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { words } from '../../../src/lib/words.ts'

const uid = process.getuid?.() ?? -1
const isRoot = uid === 0
const self: SandboxUser = { uid, gid: process.getgid?.() ?? -1, isSelf: true }

/** A project and a home, both the test's own. */
const arrange = async () => {
  const folder = await tempDir()
  const root = realpathSync(folder.path)
  const at = (...names: string[]): string => join(root, ...names)
  const write = (path: string, text = ''): void => {
    mkdirSync(dirname(at(path)), { recursive: true })
    writeFileSync(at(path), text)
  }
  write('project/src/index.js')
  write('home/notes.txt')
  return { at, write, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

const mount = (
  source: string,
  target = '/workspace',
  access: MountSettings['access'] = 'read',
): MountSettings => ({
  source,
  target,
  access,
  reason: 'a test',
})

const plan = (
  mounts: readonly MountSettings[],
  {
    facts = {},
    filesystem = {},
    programs = [{ path: '/usr/bin/true', name: 'true' }],
    user = self,
    code = null,
  }: {
    facts?: Partial<DenialFacts>
    filesystem?: Partial<ProfileSettings['filesystem']>
    programs?: FilesystemRequest['programs']
    user?: SandboxUser
    code?: FilesystemRequest['server']['package']
  } = {},
): Promise<FilesystemPlan> =>
  planFilesystem(
    {
      server: { name: 'probe', mounts, package: code },
      profile: profileOf({ filesystem }),
      programs,
      user,
    },
    { own: [], homes: [], environment: {}, ...facts },
  )

const refuse = (planning: () => Promise<unknown>, ...words: readonly string[]): Promise<void> =>
  expectRefusal(planning, 'ERR_MOUNT_REFUSED', ...words)

describe('the plan', () => {
  test('is the runtime, the root’s links and five files of /etc where nothing is granted', async () => {
    const { mounts, links, files, programPaths } = await plan([])
    const expected = existsSync('/etc/ld.so.cache') ? ['/usr', '/etc/ld.so.cache'] : ['/usr']
    const folders = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'].filter((path) =>
      existsSync(path),
    )
    const own = folders.filter((path) => !links.some((link) => link.path === path))
    expect(mounts.map(({ target }) => target).sort()).toEqual([...expected, ...own].sort())
    expect(mounts.every(({ access, source, target }) => access === 'read' && source === target)).toBe(true)
    expect(links.every(({ text }) => text.startsWith('usr/'))).toBe(true)
    expect(files.map(({ target }) => target)).toEqual(
      ['passwd', 'group', 'hosts', 'nsswitch.conf', 'resolv.conf'].map((name) => `/etc/${name}`),
    )
    expect(files.map(({ content }) => content).join('')).not.toContain(
      execFileSync('hostname', { encoding: 'utf8' }).trim(),
    )
    expect(programPaths).toEqual(['/usr/bin/true'])
  })

  test('says of each mount which file it was judged as', async () => {
    await using place = await arrange()
    symlinkSync(place.at('project'), place.at('link'))
    const { mounts } = await plan([
      mount(place.at('link')),
      mount(place.at('project/src/index.js'), '/one.js'),
    ])
    const { dev, ino } = statSync(place.at('project'), { bigint: true })
    expect(mounts).toContainEqual({
      ...mount(place.at('project')),
      kind: 'directory',
      dev,
      ino,
      origin: 'server',
    })
    expect(mounts.find(({ target }) => target === '/one.js')).toMatchObject({ kind: 'file' })
  })

  test('puts the code at its target and what it resolves from beside it', async () => {
    await using place = await arrange()
    place.write('node_modules/dep/index.js')
    const code = {
      source: place.at('project'),
      target: '/opt/app',
      with: [place.at('node_modules')],
      digest: null,
    }
    const { mounts } = await plan([], { code })
    const targets = mounts.filter(({ origin }) => origin === 'package').map(({ target }) => target)
    expect(targets.sort()).toEqual(['/opt/app', '/opt/node_modules'])
  })

  test('shows a program where a read-only tree has it, and else alone', async () => {
    await using place = await arrange()
    place.write('bin/tool')
    chmodSync(place.at('bin/tool'), 0o755)
    const programs = [{ path: place.at('bin/tool'), name: 'tool' }]
    const alone = await plan([mount(place.at('bin'), '/granted')], { programs })
    expect(alone.programPaths).toEqual(['/sallyport/bin/tool'])
    expect(alone.mounts.find(({ origin }) => origin === 'program')).toMatchObject({
      kind: 'file',
      access: 'read',
    })
    const code = { source: place.at('bin'), target: '/app', with: [], digest: null }
    expect((await plan([], { programs, code })).programPaths).toEqual(['/app/tool'])
  })

  test('leaves out what the profile reads and this host lacks, and demands what a server mounts', async () => {
    const read = [
      { path: '/usr', reason: 'r' },
      { path: '/opt/that/is/not/there', reason: 'r' },
    ]
    expect((await plan([], { filesystem: { read } })).mounts.map(({ target }) => target)).not.toContain(
      read[1]?.path,
    )
    await refuse(() => plan([mount('/opt/that/is/not/there')]), '/opt/that/is/not/there', 'does not exist')
  })

  test('takes a read that layers of the profile repeat, or that the root’s links show, once', async () => {
    const once = await plan([])
    const paths = ['/usr/lib', '/bin', '/usr', '/usr/share/doc', '/lib', '/etc/ld.so.cache', '/usr']
    const { mounts, links } = await plan([], {
      filesystem: { read: paths.map((path) => ({ path, reason: 'r' })) },
    })
    expect(mounts.map(({ target }) => target).sort()).toEqual(once.mounts.map(({ target }) => target).sort())
    expect(links).toEqual(once.links)
  })

  test('keeps within the profile', async () => {
    await using place = await arrange()
    const one = mount(place.at('project'))
    const write = { ...one, access: 'write' as const }
    for (const [ceiling, wanted] of [
      ['none', one],
      ['none', write],
      ['read', write],
    ] as const)
      await expectRefusal(
        () => plan([wanted], { filesystem: { mounts: ceiling } }),
        'ERR_PROFILE_EXCEEDED',
        ceiling,
      )
    await plan([one], { filesystem: { mounts: 'read' } })
  })
})

describe('a target', () => {
  test.each(
    words(`
      / /usr /usr/local/x /bin /lib/x /lib64 /etc /etc/passwd /etc/ssh /proc /proc/sys /sys /dev
      /dev/shm/x /sallyport /sallyport/init /run/x /boot /tmp /home /home/user
    `),
  )('%s is the sandbox’s own', async (target) => {
    await using place = await arrange()
    await refuse(() => plan([mount(place.at('project'), target)]), target, 'the sandbox’s own')
  })

  test.each([
    '/workspace',
    '/tmp/x',
    '/home/user/project',
    '/home/other',
    '/srv/x',
    '/var/lib/x',
    '/usr2',
    '/procedure',
  ])('%s is free', async (target) => {
    await using place = await arrange()
    const { mounts } = await plan([mount(place.at('project'), target)])
    expect(mounts.some((planned) => planned.target === target)).toBe(true)
  })

  test.each(['workspace', './w', '/a/../b', '/a/', '/a//b', '/a\0b', '/a\nb', ''])(
    '%j is no target',
    async (target) => {
      await using place = await arrange()
      await refuse(() => plan([mount(place.at('project'), target)]))
    },
  )

  test('that another has, or lies in, is refused', async () => {
    await using place = await arrange()
    const both = (one: string, other: string) => () =>
      plan([mount(place.at('project'), one), mount(place.at('home'), other)])
    await refuse(both('/w', '/w'), '/w', 'overlaps the mount')
    await refuse(both('/w', '/w/home'), '/w/home')
    await refuse(both('/w/home', '/w'), '/w')
    await both('/w', '/w2')()
    const code = { source: place.at('project/src'), target: '/app', with: [], digest: null }
    await refuse(() => plan([mount(place.at('home'), '/app/data')], { code }), '/app')
  })
})

describe('a denied path', () => {
  test.each(
    words(`
      .ssh/id_rsa .gnupg/x .aws/credentials .azure/x .config/gcloud/x .kube/config .docker/config.json
      .npmrc .netrc .git-credentials .pypirc .cargo/credentials.toml .mozilla/x .config/chromium/x
      .local/share/keyrings/x .bash_history .zsh_history .vault-token .config/gh/hosts.yml .claude/x
    `),
  )('in a home, %s, is not mounted at, above or inside', async (name) => {
    await using place = await arrange()
    place.write(`home/${name}`)
    const facts = { homes: [place.at('home')] }
    for (const source of new Set([
      place.at('home', name),
      place.at('home', dirname(name)),
      place.at('home'),
      place.at(),
    ]))
      for (const access of ['read', 'write'] as const)
        await refuse(() => plan([mount(source, '/workspace', access)], { facts }), source, place.at('home'))
    // The broken arm: the same mounts, of a home that is nobody's.
    await plan([mount(place.at('home'))])
  })

  test('is found behind links, the mount’s and its own', async () => {
    await using place = await arrange()
    place.write('vault/keys/id_rsa')
    symlinkSync(place.at('vault/keys'), place.at('home/.ssh'))
    symlinkSync(place.at('vault'), place.at('project/innocent'))
    const facts = { homes: [place.at('home')] }
    for (const source of ['vault', 'vault/keys', 'vault/keys/id_rsa', 'home/.ssh', 'project/innocent'])
      await refuse(() => plan([mount(place.at(source))], { facts }), '.ssh')
    await plan([mount(place.at('project'))], { facts })
  })

  test('that is absent forbids what a server could create it through, and no more', async () => {
    await using place = await arrange()
    const facts = { homes: [place.at('home')] }
    await plan([mount(place.at('home'))], { facts })
    await refuse(() => plan([mount(place.at('home'), '/workspace', 'write')], { facts }), place.at('home'))
    mkdirSync(place.at('home/code'))
    await plan([mount(place.at('home/code'), '/workspace', 'write')], { facts })
  })

  test.each(['/', '/proc', '/proc/self', '/sys', '/dev', '/dev/shm', '/run', '/etc', '/boot', '/var/run'])(
    '%s is never a source',
    async (source) => {
      if (existsSync(source)) await refuse(() => plan([mount(source)]), 'no configuration grants')
    },
  )

  test('is a credential of root, of every person, and Sallyport’s own files, whoever asks', async () => {
    await using place = await arrange()
    await refuse(() => plan([mount('/root', '/workspace', 'write')]), '/root')
    const facts = { own: [place.at('state'), place.at('project/sallyport.yaml')] }
    place.write('state/key')
    place.write('project/sallyport.yaml')
    for (const source of ['state', 'state/key', 'project', 'project/sallyport.yaml', '.'])
      await refuse(() => plan([mount(place.at(source))], { facts }), 'Sallyport’s own')
    await plan([mount(place.at('project/src'))], { facts })
  })

  test.each([
    ['SSH_AUTH_SOCK', (path: string) => path],
    ['DOCKER_HOST', (path: string) => `unix://${path}`],
    ['DBUS_SESSION_BUS_ADDRESS', (path: string) => `unix:path=${path},guid=0`],
  ] as const)('is the socket that %s names', async (name, value) => {
    await using place = await arrange()
    place.write('agent/socket')
    const facts = { environment: { [name]: value(place.at('agent/socket')) } }
    await refuse(() => plan([mount(place.at('agent'))], { facts }), 'socket')
    await plan([mount(place.at('agent'))])
  })

  test('holds for the profile’s and the package’s trees too', async () => {
    await using place = await arrange()
    place.write('home/.ssh/id_rsa')
    const facts = { homes: [place.at('home')] }
    const read = [{ path: place.at('home'), reason: 'r' }]
    await refuse(() => plan([], { facts, filesystem: { read } }), '.ssh')
    const code = { source: place.at('home'), target: '/app', with: [], digest: null }
    await refuse(() => plan([], { facts, code }), '.ssh')
  })
})

describe('a source', () => {
  test('is a file or a folder, no device, pipe or socket', async () => {
    await using place = await arrange()
    execFileSync('mkfifo', [place.at('pipe')])
    await refuse(() => plan([mount(place.at('pipe'))]), 'device, socket or pipe')
    await refuse(() => plan([mount('/dev/null', '/null')]))
  })

  test('that the sandbox’s user can’t read, or must write and can’t, is refused', async () => {
    await using place = await arrange()
    const other: SandboxUser = { uid: 1_900_000_001, gid: 1_900_000_001, isSelf: false }
    await plan([mount(place.at('project'))], { user: other })
    await refuse(
      () => plan([mount(place.at('project'), '/w', 'write')], { user: other }),
      'written',
      'run_as',
    )
    chmodSync(place.at('project'), 0o700)
    await refuse(() => plan([mount(place.at('project'))], { user: other }), 'read', 'run_as')
    await plan([mount(place.at('project'), '/w', 'write')], { user: { ...self, isSelf: false } })
    if (isRoot) return
    chmodSync(place.at('project'), 0o500)
    await plan([mount(place.at('project'))])
    await refuse(() => plan([mount(place.at('project'), '/w', 'write')]), 'written')
    chmodSync(place.at('project'), 0o700)
  })

  test('of code is outside of every writable mount', async () => {
    await using place = await arrange()
    place.write('project/node_modules/dep/index.js')
    const writable = (path: string) => [mount(place.at(path), '/workspace', 'write')]
    const code = { source: place.at('project/src'), target: '/app', with: [], digest: null }
    for (const path of ['project', 'project/src', '.'])
      await expectRefusal(() => plan(writable(path), { code }), 'ERR_PACKAGE_UNSAFE', place.at('project/src'))
    mkdirSync(place.at('project/src/cache'))
    await expectRefusal(() => plan(writable('project/src/cache'), { code }), 'ERR_PACKAGE_UNSAFE')
    const further = { ...code, with: [place.at('project/node_modules')] }
    await expectRefusal(() => plan(writable('project/node_modules'), { code: further }), 'ERR_PACKAGE_UNSAFE')
    await plan(writable('home'), { code })
    const programs = [{ path: place.at('project/src/index.js'), name: 'tool' }]
    chmodSync(place.at('project/src/index.js'), 0o755)
    await expectRefusal(() => plan(writable('project'), { programs }), 'ERR_COMMAND_UNSAFE')
    // A tree that the profile reads has the program, and the mount is a part of that tree.
    const filesystem = { read: [{ path: place.at('project'), reason: 'a test' }] }
    await plan([], { programs, filesystem })
    await expectRefusal(() => plan(writable('project/src'), { programs, filesystem }), 'ERR_COMMAND_UNSAFE')
  })
})
