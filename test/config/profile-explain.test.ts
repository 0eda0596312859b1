// What one thing gets, and the line that decides it.
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { explainProfile, type PathJudge } from '../../src/config/profile-explain.ts'
import type { Subject } from '../../src/config/profile-verdict.ts'
import { loadProfile } from '../../src/config/profile.ts'
import { refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'

const profile = `version: 1
name: mine
extends: allowlisted-egress
widens: true
filesystem:
  read: [{ path: /usr, reason: runtime }, { path: /opt/absent/data, reason: data }]
  write: [{ path: /opt/absent/data/out, reason: results }]
network:
  mode: allowlist
  allow: [{ host: '*.github.com', port: 443, reason: the API }]
environment:
  pass: [LANG, { name: SSH_AUTH_SOCK, override: signing }]
  set: { MODE: quiet }
syscalls: { allow: [ptrace], deny: [sync] }
limits: { pids: 16 }
`

await using dir = await tempDir()
await writeFile(`${dir.path}/mine.yaml`, profile, { mode: 0o600 })
const mine = await loadProfile(`${dir.path}/mine.yaml`, { folders: [], owners: [process.getuid?.() ?? 0] })
const entry = "{ host: api.github.com, port: 443, address: '10.0.0.7', private: true, reason: ours }"
await writeFile(
  `${dir.path}/pinned.yaml`,
  profile.replace('name: mine', 'name: pinned').replace(/\{ host: .* \}/, entry),
  {
    mode: 0o600,
  },
)
const pinned = await loadProfile(`${dir.path}/pinned.yaml`, {
  folders: [],
  owners: [process.getuid?.() ?? 0],
})
const judgePath: PathJudge = (_, path) =>
  Promise.resolve({
    gets: `judged ${path}`,
    because: 'b',
    decidedBy: path.startsWith('/usr')
      ? { list: 'read', path: '/usr' }
      : path.startsWith('/opt/absent/data/out')
        ? { list: 'write', path: '/opt/absent/data/out' }
        : path === '/tmp/x'
          ? 'scratch'
          : path === '/etc/passwd'
            ? 'always'
            : 'ungranted',
  })
const judge = (name: string) => ({
  gets: `judged ${name}`,
  because: 'b',
  decidedBy: name === 'ptrace' ? ('allow' as const) : ('strict' as const),
})

test.each<[Subject, string, string, string]>([
  ['path', '/usr/lib', 'judged /usr/lib', 'mine.yaml:6'],
  ['path', '/opt/absent/data/out/x', 'judged /opt/absent/data/out/x', 'mine.yaml:7'],
  ['path', '/tmp/x', 'judged /tmp/x', 'offline.yaml:10'],
  ['path', '/etc/passwd', 'judged /etc/passwd', 'always'],
  ['path', '/srv', 'judged /srv', 'mine.yaml:6'],
  ['host', 'api.github.com', 'allowed', 'mine.yaml:10'],
  ['host', 'API.GitHub.com:443', 'allowed', 'mine.yaml:10'],
  ['host', 'api.github.com:80', 'unreachable', 'mine.yaml:10'],
  ['host', 'github.com', 'unreachable', 'mine.yaml:10'],
  ['host', 'api.github.com.', 'allowed', 'mine.yaml:10'],
  ['host', 'localhost', 'own', 'always'],
  ['host', '127.0.0.1:22', 'own', 'always'],
  ['host', '[::1]:22', 'own', 'always'],
  ['host', '::1', 'own', 'always'],
  ['host', '169.254.169.254:80', 'unreachable', 'mine.yaml:9'],
  ['host', '[2606:4700::1111]:443', 'unreachable', 'mine.yaml:9'],
  ['env', 'HTTPS_PROXY', 'own', 'mine.yaml:9'],
  ['env', 'NODE_USE_ENV_PROXY', 'own', 'mine.yaml:9'],
  ['credential', 'egress', 'allowed', 'allowlisted-egress.yaml:16'],
  ['credential', 'env', 'refused', 'allowlisted-egress.yaml:16'],
  ['env', 'MODE', '"quiet"', 'mine.yaml:13'],
  ['env', 'LANG', 'passed', 'mine.yaml:12'],
  ['env', 'SSH_AUTH_SOCK', 'passed', 'mine.yaml:12'],
  ['env', 'HOME', 'own', 'always'],
  ['env', 'NODE_OPTIONS', 'refused', 'always'],
  ['env', 'constructor', 'absent', 'mine.yaml:12'],
  ['syscall', 'ptrace', 'judged ptrace', 'mine.yaml:14'],
  ['syscall', 'read', 'judged read', 'offline.yaml:21'],
  ['limit', 'pids', '16', 'mine.yaml:15'],
  ['limit', 'memory', '536870912', 'offline.yaml:25'],
  ['limit', 'memory_bytes', '536870912', 'offline.yaml:25'],
  ['limit', 'tmp', '67108864', 'offline.yaml:10'],
])('%s %s gets %s, decided at %s', async (subject, name, gets, where) => {
  expect(await explainProfile(mine, subject, name, judge, judgePath)).toMatchObject({
    gets,
    decided_by: where,
  })
})

test('execve is refused where the server may start nothing', async () => {
  const still = { ...mine, exec: 'none' as const }
  for (const name of ['execve', 'execveat'])
    expect(await explainProfile(still, 'syscall', name, judge, judgePath)).toMatchObject({
      gets: 'refused (EPERM)',
    })
})

test('a host that has an address is said to have it', async () => {
  const { because } = await explainProfile(pinned, 'host', 'api.github.com', judge, judgePath)
  expect(because).toContain('api.github.com:443 at 10.0.0.7, on private addresses too: ours')
})

test.each<[Subject, string]>([
  ['path', 'relative'],
  ['path', '/a\0b'],
  ['host', 'a b'],
  ['host', 'a:0'],
  ['host', '0x7f.1'],
  ['host', '[x]:1'],
  ['credential', 'header'],
  ['env', 'A=B'],
  ['limit', 'memry'],
])('%s %s is no question', async (subject, name) => {
  expect((await refusal(() => explainProfile(mine, subject, name, judge, judgePath))).code).toBe('ERR_USAGE')
})
