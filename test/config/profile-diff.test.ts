// Diff: what a server could newly do under a second profile, in words, and the line that decides it.
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { SyscallJudge } from '../../src/config/profile-explain.ts'
import { diffProfiles } from '../../src/config/profile-diff.ts'
import { explainSyscall } from '../../src/sandbox/syscalls.ts'
import { keyRules } from '../../src/config/narrowing.ts'
import { tempDir } from '../support/temp-dir.ts'

const uid = process.getuid?.() ?? 0

const judge: SyscallJudge = (name, policy) => {
  const { rules, decidedBy } = explainSyscall(name, policy)
  const gets = rules.every(({ action }) => action === 'allow')
    ? 'allowed'
    : rules.some(({ action }) => action === 'allow')
      ? 'depends on its arguments'
      : 'refused'
  return { gets, because: '', decidedBy }
}

async function diff(before: string, after: string) {
  await using dir = await tempDir()
  for (const [name, text] of Object.entries({ before, after }))
    await writeFile(`${dir.path}/${name}.yaml`, `version: 1\nname: ${name}\n${text}`, { mode: 0o600 })
  const found = await diffProfiles('before', 'after', { folders: [dir.path], owners: [uid] }, judge)
  const words = (changes: (typeof found)['newly']): string[] =>
    changes.map(({ could, decided_at: decidedAt }) => `${could} (${decidedAt})`)
  return { ...found, newlyWords: words(found.newly), noLongerWords: words(found.no_longer) }
}

const narrow = `filesystem: { read: [{ path: /usr, reason: r }] }
environment: { pass: [LANG] }
exec: none
syscalls: { deny: [uname] }
limits:
  { memory_bytes: 16777216, pids: 8, cpu: 0.5, open_files: 64, file_bytes: 65536, enforcement: { memory: required, cpu: required, pids: required, files: required } }
`

const wide = `filesystem:
  read: [{ path: /usr, reason: r }, { path: /opt, reason: r }]
  write: [{ path: /srv/x, reason: r }]
  mounts: write
  tmp_bytes: 134217728
network:
  mode: allowlist
  allow: [{ host: a.example.com, port: 443, private: true, reason: r }]
credentials: [egress, env]
environment: { pass: [LANG, TZ], set: { MODE: fast } }
syscalls: { allow: [ptrace] }
limits:
  memory_bytes: 33554432
  pids: 16
  cpu: 2
  open_files: 128
  file_bytes: 131072
  enforcement: { memory: best-effort, cpu: best-effort, pids: best-effort, files: best-effort }
`

test('every key that can widen is said in words, with the line that decides it', async () => {
  const { newlyWords, noLongerWords, newly } = await diff(narrow, wide)
  expect(newlyWords).toEqual([
    'read /opt (after.yaml:4)',
    'write to /srv/x, and read what is there (after.yaml:5)',
    'have host folders to write to, where its entry mounts them (after.yaml:6)',
    'fill 134217728 bytes of each scratch folder, instead of 67108864 (after.yaml:7)',
    'have a network in which the listed hosts exist (after.yaml:9)',
    'connect to a.example.com:443, on private addresses too, where its entry asks for it (after.yaml:10)',
    'use credentials that the proxy puts into its requests (after.yaml:11)',
    'be handed credentials in its environment, for a call (after.yaml:11)',
    'start other programs (default)',
    'see the daemon’s variable TZ (after.yaml:12)',
    'have a value of its own for MODE (after.yaml:12)',
    'make the system call ptrace (after.yaml:13)',
    'make a system call that before denies: uname (default)',
    'use 33554432 bytes of memory, instead of 16777216 (after.yaml:15)',
    'have 16 processes and threads, instead of 8 (after.yaml:16)',
    'use 2 cores, instead of 0.5 (after.yaml:17)',
    'have 128 files open in each process, instead of 64 (after.yaml:18)',
    'write files of 131072 bytes, instead of 65536 (after.yaml:19)',
    ...['memory', 'cpu', 'pids', 'files'].map(
      (limit) => `run where its limit of ${limit} is held by a watchdog, or by nothing (after.yaml:20)`,
    ),
  ])
  expect(noLongerWords).toEqual([])
  // No key that can widen is without words of its own; the two that have one value only cannot.
  const said = new Set(newly.map(({ key }) => key.replace(/\[\d+\]$|\.MODE$/, '')))
  expect(keyRules.map(({ path }) => path.join('.')).filter((key) => !said.has(key))).toEqual([
    'filesystem.home',
    'syscalls.base',
  ])
})

test('the other way round, the same is no longer', async () => {
  const [there, back] = [await diff(narrow, wide), await diff(wide, narrow)]
  expect(back.newly).toEqual([])
  expect(back.no_longer.map(({ key }) => key)).toEqual(there.newly.map(({ key }) => key))
})

test('a host at an address of one’s own is something new, and so is one that no longer has it', async () => {
  const allow = (more: string): string =>
    `network: { mode: allowlist, allow: [{ host: a.example.com, port: 443, ${more}reason: r }] }\n`
  const { newlyWords, noLongerWords } = await diff(allow(''), allow('address: 93.184.216.34, '))
  expect(newlyWords).toEqual([
    'connect to a.example.com:443 at 93.184.216.34, where its entry asks for it (after.yaml:3)',
  ])
  expect(noLongerWords).toEqual(['connect to a.example.com:443, where its entry asks for it (before.yaml:3)'])
})

test('a path below one that was granted is nothing new, and hosts without a network are none', async () => {
  const { newly } = await diff(
    'filesystem: { read: [{ path: /usr, reason: r }] }\n',
    'filesystem: { read: [{ path: /usr/lib, reason: r }] }\nnetwork: { mode: none, allow: [{ host: a.example.com, port: 1, reason: r }] }\n',
  )
  expect(newly).toEqual([])
})

test('a call that nothing allows is not newly made where its denial is gone, nor one that the base allows', async () => {
  const { newly, no_longer: noLonger } = await diff(
    'syscalls: { deny: [ptrace] }\n',
    'syscalls: { allow: [read] }\n',
  )
  expect([newly, noLonger]).toEqual([[], []])
})

test('a call that says nothing new moves no other from its line', async () => {
  const { newlyWords } = await diff('', 'syscalls:\n  allow:\n    - read\n    - ptrace\n')
  expect(newlyWords).toEqual(['make the system call ptrace (after.yaml:6)'])
})
