// What `explain` says of paths, variables, hosts and limits, against what a process finds in the very sandbox of the profile: the plan has no other readers.
import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { asUser } from '../support/as-user.ts'
import { type Compared, type Comparison, compare, listedHosts, type Look } from '../support/explained.ts'
import { isRoot, ordinaryUid } from '../support/user.ts'

const arms = isRoot ? (['root', 'an ordinary user'] as const) : (['an ordinary user'] as const)

const always = [
  '/',
  '/bin',
  '/bin/sh',
  '/sbin',
  '/lib',
  '/lib64',
  '/lib/os-release',
  '/usr',
  '/usr/bin',
  '/usr/bin/env',
  '/usr/bin/../lib',
  '/usr/bin/awk',
  '/usr/bin/editor',
  '/usr/bin/nothing',
  '/usr/bin/env/x',
  '/usr/share/zoneinfo',
  '/usr/lib/locale',
  '/usr/local',
  '/etc',
  '/etc/passwd',
  '/etc/group',
  '/etc/hosts',
  '/etc/resolv.conf',
  '/etc/nsswitch.conf',
  '/etc/ld.so.cache',
  '/etc/shadow',
  '/etc/hostname',
  '/etc/ssl',
  '/etc/ssl/certs',
  '/etc/ssl/private',
  '/etc/alternatives',
  '/etc/localtime',
  '/etc/passwd/x',
  '/home',
  '/home/user',
  '/home/user/x',
  '/home/user/a/b',
  '/home/ann',
  '/root',
  '/root/.ssh/id_rsa',
  '/tmp',
  '/tmp/x',
  '/var',
  '/var/tmp',
  '/var/log',
  '/run',
  '/run/docker.sock',
  '/var/run/docker.sock',
  '/sys',
  '/sys/kernel',
  '/boot',
  '/mnt',
  '/srv',
  '/opt',
  '/dev',
  '/dev/null',
  '/dev/zero',
  '/dev/full',
  '/dev/random',
  '/dev/urandom',
  '/dev/tty',
  '/dev/kvm',
  '/dev/sda',
  '/dev/mem',
  '/dev/pts',
  '/dev/ptmx',
  '/dev/shm',
  '/dev/shm/x',
  '/dev/fd',
  '/dev/stdin',
  '/dev/stdout',
  '/dev/log',
  '/dev/mqueue',
  '/proc',
  '/proc/self',
  '/proc/self/environ',
  '/proc/self/maps',
  '/proc/self/mem',
  '/proc/self/comm',
  '/proc/self/oom_score_adj',
  '/proc/self/exe',
  '/proc/self/root',
  '/proc/self/root/etc/passwd',
  '/proc/self/fd',
  '/proc/self/ns/net',
  '/proc/self/net/dev',
  '/proc/self/nothing',
  '/proc/self/task',
  '/proc/thread-self/comm',
  '/proc/mounts',
  '/proc/net/tcp',
  '/proc/1',
  '/proc/1/environ',
  '/proc/1/maps',
  '/proc/1/mem',
  '/proc/1/root',
  '/proc/1/exe',
  '/proc/1/fd',
  '/proc/1/status',
  '/proc/1/cmdline',
  '/proc/1/mountinfo',
  '/proc/1/ns',
  '/proc/1/net',
  '/proc/kcore',
  '/proc/kcore/x',
  '/proc/bus/x',
  '/proc/sys/kernel/core_pattern',
  '/proc/sys/kernel/hostname',
  '/proc/sys/user/max_user_namespaces',
  '/proc/sys/vm/drop_caches',
  '/proc/sys/nothing',
  '/proc/nothing',
  '/sallyport',
  '/sallyport/init',
  '/sallyport/egress',
  '/sallyport/credentials',
  '/nothing/at/all',
] as const

const ofTheMachine = [...(await readdir('/proc')), ...(await readdir('/dev')).map((name) => `../dev/${name}`)]
  .filter((name) => !/[0-9]$/.test(name))
  .map((name) => join('/proc', name))

/** A tree with everything in it that a mount shows otherwise than it is, and a profile that grants parts of it. */
const layOut = async (): Promise<
  AsyncDisposable & { readonly path: string; readonly paths: readonly string[] }
> => {
  const path = await mkdtemp('/var/tmp/sp-shown-')
  const file = async (name: string, mode = 0o644): Promise<void> => {
    await writeFile(join(path, name), 'x')
    await chmod(join(path, name), mode)
  }
  for (const name of [
    'data/shut',
    'project/.git',
    'project/sub/.vscode',
    'project/plain',
    'outside',
    'profiles',
  ])
    await mkdir(join(path, name), { recursive: true })
  for (const name of [
    'data/a',
    'data/shut/a',
    'project/a',
    'project/.git/config',
    'project/AGENTS.md',
    'project/sub/.vscode/tasks.json',
  ])
    await file(name, 0o666)
  await file('outside/a')
  await file('data/secret', 0o600)
  await file('project/kept', 0o444)
  const links = {
    in: 'a',
    out: '../outside/a',
    etc: '/etc/passwd',
    scratch: '/tmp/new',
    dangling: 'nothing',
    loop: 'loop',
    up: '../project/a',
  }
  for (const [name, to] of Object.entries(links)) await symlink(to, join(path, 'data', name))
  await symlink(join(path, 'data'), join(path, 'link'))
  execFileSync('mkfifo', ['--mode=666', join(path, 'data/pipe')])
  await chmod(join(path, 'data/shut'), 0o700)
  for (const name of ['project', 'project/sub', 'project/plain', 'project/.git'])
    await chmod(join(path, name), 0o777)
  await chmod(path, 0o755)
  const profile = `version: 1
name: mine
extends: offline
widens: true
filesystem:
  read:
    - { path: /usr, reason: runtime }
    - { path: ${path}/data, reason: data }
    - { path: ${path}/gone, reason: not here }
    - { path: ${path}/link, reason: a link }
  write: [{ path: ${path}/project, reason: project }]
`
  const listed = `version: 1
name: listed
extends: allowlisted-egress
widens: true
network: { mode: allowlist, allow: ${JSON.stringify(listedHosts)} }
environment: { pass: [LANG, TZ, GREETING], set: { MODE: quiet } }
limits: { open_files: 200, file_bytes: 1048576 }
`
  await writeFile(join(path, 'profiles/mine.yaml'), profile, { mode: 0o644 })
  await writeFile(join(path, 'profiles/listed.yaml'), listed, { mode: 0o644 })
  const names = `data data/a data/shut data/shut/a data/secret data/in data/out data/etc data/scratch data/dangling data/loop data/up
    data/pipe data/new data/a/x project project/a project/kept project/.git project/.git/config project/.git/new project/AGENTS.md project/CLAUDE.md project/plain project/plain/.git
    project/sub project/sub/.vscode project/sub/.vscode/tasks.json project/sub/new outside outside/a profiles gone gone/a link link/a . nothing`
  return {
    path,
    paths: names
      .trim()
      .split(/\s+/)
      .map((name) => join(path, name)),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  }
}

/** What must be found where `explain` says so; a socket opens for nobody, and errno says that it is there. */
const fits: Readonly<Record<string, (look: Look) => boolean>> = {
  read: ({ read, write }) => read === 'ok' && write !== 'ok',
  // Nobody reads from a pipe here, which the errno of its opening says.
  write: ({ read, write }) => (write === 'ok' || write === 'ENXIO') && (read === 'ok' || read === 'ENOENT'),
  private: ({ write }) => write === 'ok',
  own: ({ named, write }) => named === 'ok' && write !== 'ok',
  partly: ({ read, write }) => read === 'ok' && write === 'EROFS',
  masked: ({ found, read, holds, write }) =>
    found === 'ok' && write !== 'ok' && (read === 'EACCES' || (Array.isArray(holds) && holds.length === 0)),
  closed: ({ read, write }) => read !== 'ok' && read !== 'ENOENT' && write !== 'ok',
  socket: ({ found, read }) => found === 'ok' && read === 'ENXIO',
  absent: ({ found, write }) => found !== 'ok' && found !== 'EACCES' && write !== 'ok',
  denied: ({ found, write }) => found !== 'ok' && found !== 'EACCES' && write !== 'ok',
}

const differences = ({ explained, inside }: Compared): readonly unknown[] =>
  Object.entries(explained).flatMap(([path, said]) => {
    const look = inside.paths[path]
    return look !== undefined && fits[said.gets]?.(look) === true ? [] : [{ path, said, look }]
  })

/** What was said of variables, hosts and limits, and is otherwise. */
const othersOf = ({ said, inside }: Compared): readonly unknown[] => {
  const wrong = (name: string, found: unknown, holds: boolean): readonly unknown[] =>
    holds ? [] : [{ name, found, said: { ...said.env, ...said.host, ...said.limit }[name] }]
  const limit = (label: string): string | undefined =>
    new RegExp(`^${label} +([0-9]+) +([0-9]+) `, 'm').exec(inside.limits)?.[2]
  const limits = {
    open_files: limit('Max open files'),
    file_bytes: limit('Max file size'),
    tmp: String(inside.scratchBytes),
  }
  return [
    ...Object.entries(said.env).flatMap(([name, { gets, because }]) => {
      const value = inside.variables[name]
      const isAbsent = gets === 'absent' || gets === 'refused'
      // The daemon of this test has no variables, so of what is passed there is the sandbox's own value, or none.
      const isOwn =
        value === undefined ? gets === 'passed' && !because.includes(', and else ') : because.includes(value)
      return wrong(name, value, isAbsent ? value === undefined : gets === JSON.stringify(value) || isOwn)
    }),
    ...Object.entries(said.host).flatMap(([name, { gets }]) => {
      const address = inside.hosts[name] ?? ''
      const pattern = { own: /^(127\.0\.0\.1|::1)$/, allowed: /^198\.1[89]\./, unreachable: /^E[A-Z_]+$/ }[
        gets
      ]
      return wrong(name, address, pattern?.test(address) === true)
    }),
    ...Object.entries(said.limit).flatMap(([name, { gets }]) =>
      wrong(name, limits[name as keyof typeof limits], limits[name as keyof typeof limits] === gets),
    ),
  ]
}

test.each(arms)('what is explained is what a sandbox of %s has, under three profiles', async (arm) => {
  const isOther = isRoot && arm !== 'root'
  await using tree = await layOut()
  if (isOther)
    for (const path of ['profiles', 'profiles/mine.yaml', 'profiles/listed.yaml'])
      await chown(join(tree.path, path), ordinaryUid, ordinaryUid)
  const profiles = ['offline', 'listed', 'mine']
  const asked = {
    paths: [...new Set([...always, ...ofTheMachine, ...tree.paths])],
    hosts: [
      'localhost',
      'sandbox',
      'example.com',
      'api.example.com',
      'b.api.example.com',
      'a.wild.example.com',
      'wild.example.com',
    ],
    variables: [
      'PATH',
      'HOME',
      'USER',
      'LANG',
      'TERM',
      'TMPDIR',
      'TZ',
      'GREETING',
      'MODE',
      'PWD',
      'SHELL',
      'HTTPS_PROXY',
      'NO_PROXY',
      'NODE_OPTIONS',
      'LD_PRELOAD',
      'AWS_SECRET_ACCESS_KEY',
    ],
  }
  const comparison = isOther
    ? (JSON.parse(
        await asUser('support/explained.ts', JSON.stringify(profiles), tree.path, JSON.stringify(asked)),
      ) as Comparison)
    : await compare(profiles, tree.path, asked)
  for (const compared of Object.values(comparison)) {
    expect(Object.keys(compared.explained).length).toBe(asked.paths.length)
    expect(differences(compared)).toEqual([])
    expect(othersOf(compared)).toEqual([])
  }
})
