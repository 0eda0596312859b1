// Which level is found, on this machine and on trees of files that look like other machines.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { detectCgroups, type CgroupSupport } from '../../../src/sandbox/cgroup/level.ts'
import { childrenOf } from '../../../src/sandbox/proof.ts'
import { tempDir } from '../../support/temp-dir.ts'

/** Files of one group: what its processes are, what it was handed, what it hands on; no events file at the real root. */
function group(path: string, { procs = '', handed = '', on = '', isRoot = false } = {}): string {
  mkdirSync(path, { recursive: true })
  const files = { 'cgroup.procs': procs, 'cgroup.controllers': handed, 'cgroup.subtree_control': on }
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text)
  if (!isRoot) writeFileSync(join(path, 'cgroup.events'), 'populated 0\n')
  return path
}

const mount2 = (point: string, root = '/'): string =>
  `30 20 0:26 ${root} ${point} rw,nosuid - cgroup2 cgroup2 rw`
const mount1 = (point: string, names: string): string =>
  `31 20 0:27 / ${point} rw,nosuid - cgroup cgroup rw,${names}`
const bases = ({ bases: { memory, pids, cpu, kill } }: CgroupSupport): readonly (string | null)[] =>
  [memory, pids, cpu, kill].map((base) => (base === null ? null : `${base.version} ${base.path}`))
const all = 'cpu io memory pids'

test('a user whose daemon is alone in a delegated version 2 group gets everything from it', async () => {
  await using dir = await tempDir()
  group(dir.path, { handed: all, on: all, isRoot: true })
  const own = group(join(dir.path, 'user.slice/sallyport.scope'), { procs: '77\n', handed: all })
  const view = { mountinfo: mount2(dir.path), self: '0::/user.slice/sallyport.scope\n', pid: 77, uid: 1000 }
  const found = detectCgroups(view)
  expect(found).toMatchObject({ level: 'v2-delegated', cause: null, mend: null })
  expect(bases(found)).toEqual(Array(4).fill(`2 ${own}`))
})

test('what the daemon has started is no stranger in its group, and whoever started it is one', async () => {
  await using dir = await tempDir()
  group(dir.path, { handed: all, on: all, isRoot: true })
  const child = spawn('sh', ['-c', 'sleep 60 & echo $!; wait'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const levelWith = (...pids: readonly (number | undefined)[]): string => {
      group(join(dir.path, 'service'), { procs: `${pids.join('\n')}\n`, handed: all })
      const view = { mountinfo: mount2(dir.path), self: '0::/service\n', pid: process.pid, uid: 1000 }
      return detectCgroups(view).level
    }
    const grandchild = Number(line.toString())
    expect(levelWith(process.pid, child.pid, grandchild)).toBe('v2-delegated')
    expect(levelWith(process.pid, child.pid, grandchild, process.ppid)).toBe('none')
    // As whoever is in another pid namespace, and one whom a proc mounted with hidepid shows to nobody.
    for (const unseen of [0, 2 ** 30]) expect(levelWith(process.pid, unseen)).toBe('none')
  } finally {
    for (const pid of childrenOf(child.pid ?? 0)) process.kill(pid.pid, 'SIGKILL')
    child.kill('SIGKILL')
  }
})

test('a user whose group others share gets only its kill switch, and is told how to get a group of its own', async () => {
  await using dir = await tempDir()
  group(dir.path, { handed: all, on: all, isRoot: true })
  const own = group(join(dir.path, 'session'), { procs: '1\n77\n', handed: all })
  const found = detectCgroups({ mountinfo: mount2(dir.path), self: '0::/session\n', pid: 77, uid: 1000 })
  expect(found).toMatchObject({ level: 'none', mend: expect.stringContaining('Delegate=yes') })
  expect(bases(found)).toEqual([null, null, null, `2 ${own}`])
})

test('a user of a machine that has no control group mounted is told to mount them, and of no systemd', () => {
  const found = detectCgroups({ mountinfo: '', self: '0::/session\n', pid: 77, uid: 1000 })
  expect(found).toMatchObject({
    level: 'none',
    mend: expect.stringMatching(/^mount the cgroup file systems/),
  })
})

test('a user is not given what delegation left out', async () => {
  await using dir = await tempDir()
  group(dir.path, { handed: all, on: all, isRoot: true })
  const own = group(join(dir.path, 'user'), { procs: '77\n', handed: 'memory pids' })
  const found = detectCgroups({ mountinfo: mount2(dir.path), self: '0::/user\n', pid: 77, uid: 1000 })
  expect(bases(found)).toEqual([`2 ${own}`, `2 ${own}`, null, `2 ${own}`])
  expect(found.cause).toBe('no control group that holds cpu can be written by uid 1000')
})

test('root whose group others share takes the top of version 2', async () => {
  await using dir = await tempDir()
  group(dir.path, { procs: '1\n', handed: all, isRoot: true })
  group(join(dir.path, 'session'), { procs: '1\n77\n', handed: all })
  const found = detectCgroups({ mountinfo: mount2(dir.path), self: '0::/session\n', pid: 77, uid: 0 })
  expect(found).toMatchObject({ level: 'v2', cause: null })
  expect(found.bases.memory).toEqual({ version: 2, path: dir.path })
})

test('in a container the paths count from what the container sees', async () => {
  await using dir = await tempDir()
  const own = group(join(dir.path, 'inner'), { procs: '77\n', handed: all })
  const view = {
    mountinfo: mount2(dir.path, '/docker/abc'),
    self: '0::/docker/abc/inner\n',
    pid: 77,
    uid: 1000,
  }
  expect(detectCgroups(view).bases.pids).toEqual({ version: 2, path: own })
  const outside = { ...view, self: '0::/../elsewhere\n' }
  expect(detectCgroups(outside).level).toBe('none')
})

test('version 1 gives each limit from its own hierarchy, and version 2 beside it is not joined for its kill switch alone', async () => {
  await using dir = await tempDir()
  const [memory, cpu, unified] = ['memory', 'cpu,cpuacct', 'a\\040b'].map((name) => join(dir.path, name))
  for (const path of [join(memory ?? '', 'own'), cpu ?? '']) mkdirSync(path, { recursive: true })
  group(join(dir.path, 'a b'), { handed: 'hugetlb', isRoot: true })
  const mountinfo = [
    mount1(memory ?? '', 'memory'),
    mount1(cpu ?? '', 'cpu,cpuacct'),
    mount2(unified ?? ''),
  ].join('\n')
  const self = '5:memory:/own\n4:cpu,cpuacct:/\n0::/\n'
  const found = detectCgroups({ mountinfo, self, pid: 77, uid: 0 })
  expect(found.level).toBe('v1')
  expect(bases(found)).toEqual([`1 ${memory}/own`, null, `1 ${cpu}`, null])
})

test('a user of version 1 gets the folder that root gave, and is told the command where there is none', async () => {
  await using dir = await tempDir()
  const given = join(dir.path, 'sallyport')
  // Unwritable to everybody but root, for whom the mode says nothing: the own group is then the first choice
  mkdirSync(join(dir.path, 'own'))
  chmodSync(join(dir.path, 'own'), 0o555)
  const view = {
    mountinfo: mount1(dir.path, 'memory,pids,cpu'),
    self: '5:memory,pids,cpu:/elsewhere\n',
    pid: 77,
    uid: 1000,
  }
  expect(detectCgroups(view)).toMatchObject({ level: 'none', mend: `as root: install -d -o 1000 ${given}` })
  mkdirSync(given)
  expect(bases(detectCgroups(view))).toEqual([`1 ${given}`, `1 ${given}`, `1 ${given}`, null])
})

test('this machine’s own files can be read', () => {
  expect(['v2-delegated', 'v2', 'v1', 'none']).toContain(detectCgroups().level)
})
