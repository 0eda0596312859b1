// Lint: what would not load is an error, what is dangerous is named with why.
import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { lintProfile } from '../../src/config/profile-lint.ts'
import { decideSyscalls } from '../../src/sandbox/syscalls.ts'
import { refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'

const uid = process.getuid?.() ?? 0
const shipped = [
  'allowlisted-egress',
  'browser',
  'node',
  'offline',
  'python',
  'workspace-read',
  'workspace-write',
]

async function lint(rest: string, head = 'version: 1\nname: mine\n') {
  await using dir = await tempDir()
  await writeFile(`${dir.path}/mine.yaml`, `${head}${rest}`, { mode: 0o600 })
  const report = await lintProfile(
    'mine',
    { folders: [dir.path], owners: [uid] },
    (policy) => void decideSyscalls(policy),
    (path) => (path === '/usr/bin' ? 'is inside keys' : null),
  )
  const lines = report.findings.map(
    ({ level, message }) => `${level} ${message.replaceAll(`${dir.path}/`, '')}`,
  )
  return { ...report, lines }
}

const read = (path: string): string => `filesystem: { read: [{ path: ${path}, reason: r }] }\n`

test.each(shipped)('%s, as it ships, is valid', async (name) => {
  const { valid } = await lintProfile(
    name,
    { folders: [], owners: [uid] },
    (policy) => void decideSyscalls(policy),
    (path) => (path === '/usr/bin' ? 'is inside keys' : null),
  )
  expect(valid).toBe(true)
})

describe('is an error:', () => {
  test.each([
    ['an unknown key', 'exce: none\n', 'mine.yaml:3:1: exce: got the key "exce"'],
    [
      'a grant without a reason',
      'filesystem: { read: [{ path: /usr }] }\n',
      'filesystem.read[0].reason: got nothing',
    ],
    [
      'an empty reason',
      'filesystem: { read: [{ path: /usr, reason: " " }] }\n',
      'expected a reason, in words',
    ],
    [
      'a host without a reason',
      'network: { mode: allowlist, allow: [{ host: a.example.com, port: 443 }] }\n',
      'network.allow[0].reason: got nothing',
    ],
    ['a relative path', read('usr'), 'filesystem.read[0].path: got "usr"'],
    ['a path with ..', read('/usr/../etc'), 'filesystem.read[0].path'],
    [
      'more than its parent has',
      'extends: offline\nexec: any\ncredentials: [env]\n',
      'mine.yaml:5:15: credentials[0]: got env, expected nothing here',
    ],
    [
      'a system call that is none',
      'syscalls: { deny: [ptrase] }\n',
      'mine.yaml:3:20: syscalls.deny[0]: no system call is named "ptrase"; did you mean ptrace?',
    ],
    [
      'a variable of a refused family',
      'environment: { set: { LD_PRELOAD: x } }\n',
      'environment.set.LD_PRELOAD: got LD_PRELOAD',
    ],
    [
      'an assertion that is none',
      'assertions: [{ assert: cannot raed /etc, reason: r }]\n',
      'mine.yaml:3:24: assertions[0].assert: got "cannot raed /etc", expected `cannot` with one of read, write, exec, connect, resolve, see, exceed, call; did you mean read?',
    ],
    [
      'an assertion without a reason',
      'assertions: [{ assert: cannot read /etc }]\n',
      'assertions[0].reason: got nothing',
    ],
    ['text that is not YAML', 'exec: [\n', 'mine.yaml:4:1'],
  ])('%s', async (_, rest, expected) => {
    const { valid, lines } = await lint(rest)
    expect(valid).toBe(false)
    expect(lines.filter((line) => line.startsWith('error ')).join('\n')).toContain(expected)
  })

  test('every one of several, each on its line', async () => {
    const { lines } = await lint('exce: none\nfilesystem: { read: [{ path: /usr }] }\nlimits: { pids: 0 }\n')
    expect(lines).toHaveLength(3)
  })

  test('all at once: what the schema refuses, and what it would not have', async () => {
    const { valid, lines } = await lint(`extends: offline
exce: none
filesystem:
  read: [{ path: /usr, reason: r }, { path: /etc }, { path: /nowhere, reason: r }]
  write: [{ path: /srv/x, reasn: r }]
environment: { pass: [HOME], set: { LD_PRELOAD: x } }
syscalls: { allow: [ptrase, ptrace] }
limits: { pids: 0, memory_bytes: 999999999 }
network: { mode: allowlist, allow: [{ host: '*.a.example.com', port: 443, reason: r }, { host: b.a.example.com, port: 443 }] }
`)
    expect(valid).toBe(false)
    const text = lines.join('\n')
    for (const expected of [
      'error mine.yaml:4:1: exce: got the key "exce"',
      'error mine.yaml:6:37: filesystem.read[1].reason: got nothing',
      'error mine.yaml:7:27: filesystem.write[0].reasn: got the key "reasn"',
      'filesystem.write[0].reason: got nothing',
      'error mine.yaml:10:17: limits.pids: got 0',
      'network.allow[1].reason: got nothing',
      'environment.set.LD_PRELOAD: got LD_PRELOAD',
      'environment.pass[0]: got HOME, expected no variable of which the sandbox has its own',
      'syscalls.allow[0]: no system call is named "ptrase"',
      'network.mode: got allowlist, expected one of none',
      'filesystem.read[1]: got /etc, expected a path within /usr',
      'limits.memory_bytes: got 999999999, expected at most 536870912',
      'warning mine.yaml:6:37: filesystem.read[1]: /etc is dangerous',
      '/nowhere does not exist on this machine: a launch leaves it out',
      '/srv/x does not exist on this machine: a launch would be refused',
      'syscalls.allow[1]: ptrace is dangerous',
      'b.a.example.com:443 is shadowed by *.a.example.com:443',
    ])
      expect(text).toContain(expected)
  })

  test('a parent that is not there, beside what is wrong with the file', async () => {
    const { lines } = await lint('extends: nobody\nexce: none\n')
    expect(lines.join('\n')).toMatch(/exce: got the key "exce"[\s\S]*extends: got "nobody"/)
  })
})

describe('is dangerous, and said so:', () => {
  test.each([
    ['the root', read('/'), 'it is the whole machine'],
    ['/etc', read('/etc'), 'the machine’s accounts, keys and settings'],
    ['a file below /etc', read('/etc/shadow'), 'the machine’s accounts, keys and settings'],
    ['/home', read('/home'), 'people’s keys'],
    ['a home', read('/home/ada'), 'people’s keys'],
    ['a folder in a home', read('/home/ada/work'), 'what is put there later is granted'],
    ['what no launch mounts', read('/usr/bin'), '/usr/bin is inside keys: a launch would be refused'],
    ['/root', read('/root'), 'the administrator’s keys'],
    ['/var', read('/var'), 'is in it'],
    [
      'a path to write in one to read',
      'filesystem: { read: [{ path: /srv, reason: r }], write: [{ path: /srv/out, reason: r }] }\n',
      '/srv/out overlaps /srv of filesystem.read: a launch would be refused',
    ],
    [
      'a path to write in one that the parent reads',
      'extends: offline\nwidens: true\nfilesystem: { write: [{ path: /usr/share/doc, reason: r }] }\n',
      '/usr/share/doc overlaps /usr of filesystem.read: a launch would be refused',
    ],
    ['/var/run', read('/var/run'), 'sockets of services'],
    ['the Docker socket', read('/var/run/docker.sock'), 'steers the machine'],
    ['another engine’s socket', read('/opt/x/containerd.sock'), 'steers the machine'],
    ['an ssh folder', read('/srv/ada/.ssh'), 'keys or tokens'],
    ['/proc', read('/proc'), 'the host’s processes'],
    ['/sys', read('/sys/fs/cgroup'), 'the host’s kernel'],
    ['/dev', read('/dev'), 'the host’s devices'],
    [
      'anything to write',
      'filesystem: { write: [{ path: /srv/data, reason: r }] }\n',
      'write access to /srv/data',
    ],
    ['writable mounts', 'filesystem: { mounts: write }\n', 'runs unconfined'],
    ['ptrace', 'syscalls: { allow: [ptrace] }\n', 'takes over other processes'],
    ['bpf', 'syscalls: { allow: [bpf] }\n', 'loads programs into the kernel'],
    ['keyctl', 'syscalls: { allow: [keyctl] }\n', 'shared across namespaces'],
    ['mount', 'syscalls: { allow: [mount] }\n', 'the tree that was planned'],
    ['unshare', 'syscalls: { allow: [unshare] }\n', 'every capability'],
    [
      'an override',
      'environment: { set: { NODE_OPTIONS: { value: x, override: heap } } }\n',
      'an override lets it through: heap',
    ],
    [
      'private addresses',
      'network: { mode: allowlist, allow: [{ host: a.example.com, port: 443, private: true, reason: r }] }\n',
      'the host’s own network',
    ],
    [
      'an address of one’s own for a host',
      'network: { mode: allowlist, allow: [{ host: a.example.com, port: 443, address: 93.184.216.34, reason: r }] }\n',
      'a.example.com at 93.184.216.34 is dangerous: it stays there when its owner moves',
    ],
  ])('%s', async (_, rest, expected) => {
    const { valid, lines } = await lint(rest)
    expect(valid).toBe(true)
    expect(lines.filter((line) => line.startsWith('warning ')).join('\n')).toContain(expected)
  })

  test.each(['/usr', '/usr/share/docker', '/opt/app', '/etc/ssl/certs', '/etc/fonts', '/srv/data'])(
    '%s is not',
    async (path) => {
      const { lines } = await lint(read(path))
      expect(lines.filter((line) => line.includes('dangerous'))).toEqual([])
    },
  )
})

test('a path that does not exist here is a warning, and a launch leaves it out', async () => {
  const { valid, lines } = await lint(read('/opt/absent-on-every-machine'))
  expect([valid, lines]).toEqual([
    true,
    [
      'warning mine.yaml:3:22: filesystem.read[0]: /opt/absent-on-every-machine does not exist on this machine: a launch leaves it out',
    ],
  ])
})

const host = (name: string, port = 443, isPrivate = false): string =>
  `{ host: '${name}', port: ${port}, private: ${isPrivate}, reason: r }`
const hosts = (...entries: readonly string[]): string =>
  `network: { mode: allowlist, allow: [${entries.join(', ')}] }\n`

describe('is decided by another entry, and said so:', () => {
  test.each([
    [
      'a host that a pattern covers',
      hosts(host('api.example.com'), host('*.example.com')),
      'network.allow[0]: api.example.com:443 is shadowed by *.example.com:443 of network.allow[1]: removing one leaves the other',
    ],
    [
      'a host that a pattern covers in other words',
      hosts(host('*.example.com', 443, true), host('api.example.com')),
      'network.allow[1]: api.example.com:443 is shadowed by *.example.com:443 of network.allow[0]: the one says private: true, the other private: false',
    ],
    [
      'a host that has an address in one of two',
      hosts(
        host('a.example.com'),
        host('a.example.com').replace(', reason', ', address: "2606:2800:220:1::1", reason'),
      ),
      'network.allow[1]: a.example.com:443 is shadowed by a.example.com:443 of network.allow[0]: the one says address: null, the other address: 2606:2800:220:1::1',
    ],
    [
      'a host that stands there twice',
      hosts(host('a.example.com'), host('a.example.com')),
      'network.allow[1]: a.example.com:443 is shadowed by a.example.com:443 of network.allow[0]',
    ],
    [
      'a host without a network',
      `network: { allow: [${host('a.example.com')}] }\n`,
      'network.allow[0]: a.example.com:443 has no effect: network.mode is none',
    ],
    [
      'a path below another',
      'filesystem: { read: [{ path: /usr, reason: r }, { path: /usr/lib, reason: r }] }\n',
      'filesystem.read[1]: /usr/lib is shadowed by /usr of filesystem.read[0]',
    ],
  ])('%s', async (_, rest, expected) => {
    const { valid, lines } = await lint(rest)
    const shadowed = lines.filter((line) => /shadowed|has no effect/.test(line))
    expect([valid, shadowed]).toEqual([true, [expect.stringContaining(expected)]])
  })

  test.each([
    ['another port', hosts(host('*.example.com', 80), host('api.example.com'))],
    ['a name that only ends alike', hosts(host('*.example.com'), host('badexample.com'))],
    ['the name above the pattern', hosts(host('*.example.com'), host('example.com'))],
    [
      'a path that only begins alike',
      'filesystem: { read: [{ path: /usr, reason: r }, { path: /usrlib, reason: r }] }\n',
    ],
  ])('%s is not', async (_, rest) => {
    const { lines } = await lint(rest)
    expect(lines.filter((line) => line.includes('shadowed'))).toEqual([])
  })
})

test('a profile that nobody has is not a finding but an error of its own', async () => {
  expect(
    (
      await refusal(() =>
        lintProfile(
          'absent',
          { folders: [], owners: [uid] },
          () => undefined,
          () => null,
        ),
      )
    ).code,
  ).toBe('ERR_PROFILE_UNKNOWN')
})
