// Leftovers go when, and only when, their daemon is provably dead.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createCgroups } from '../../../src/sandbox/cgroup/cgroup.ts'
import { forgetGroups, recordGroups, removeLeftovers } from '../../../src/sandbox/cgroup/leftovers.ts'
import { newDaemonId, newInstanceId } from '../../../src/lib/ids.ts'
import { firstLine, hostSupport, leftOf, spawnInside } from '../../support/cgroup-host.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { isRoot } from '../../support/user.ts'

/** A record and a group directory of a daemon, changed as a test needs. */
function leftover(state: string, change: (record: Record<string, unknown>) => void): string {
  const daemon = newDaemonId()
  const directory = join(state, `sallyport-${daemon}`)
  mkdirSync(directory)
  recordGroups(state, daemon, [directory])
  const file = join(state, 'daemons', `${daemon}.json`)
  const record = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  change(record)
  writeFileSync(file, JSON.stringify(record))
  return directory
}

test('a daemon that lives keeps its groups', async () => {
  await using state = await tempDir()
  const directory = leftover(state.path, () => {})
  expect(await removeLeftovers(state.path)).toEqual([])
  expect(existsSync(directory)).toBe(true)
})

test('a pid that belongs to a process of another start time is a dead daemon’s', async () => {
  await using state = await tempDir()
  const directory = leftover(state.path, (record) => (record['startTime'] = '1'))
  expect(await removeLeftovers(state.path)).toEqual([directory])
  expect(existsSync(directory)).toBe(false)
  expect(readdirSync(join(state.path, 'daemons'))).toEqual([])
})

test('a record of another pid namespace proves nothing and is left alone', async () => {
  await using state = await tempDir()
  const directory = leftover(state.path, (record) =>
    Object.assign(record, { startTime: '1', pidNamespace: 'pid:[1]' }),
  )
  expect(await removeLeftovers(state.path)).toEqual([])
  expect(existsSync(directory)).toBe(true)
})

test('a record of another boot is forgotten, and paths that it names are not touched', async () => {
  await using state = await tempDir()
  const directory = leftover(state.path, (record) => (record['boot'] = 'another'))
  expect(await removeLeftovers(state.path)).toEqual([])
  expect(existsSync(directory)).toBe(true)
  expect(readdirSync(join(state.path, 'daemons'))).toEqual([])
})

test('a record removes no directory but its own daemon’s', async () => {
  await using state = await tempDir()
  const precious = join(state.path, 'precious')
  mkdirSync(precious)
  leftover(state.path, (record) =>
    Object.assign(record, { startTime: '1', directories: [precious, `${precious}/../precious`] }),
  )
  expect(await removeLeftovers(state.path)).toEqual([])
  expect(existsSync(precious)).toBe(true)
})

test('a record that is no record is left alone', async () => {
  await using state = await tempDir()
  forgetGroups(state.path, newDaemonId())
  mkdirSync(join(state.path, 'daemons'))
  for (const [name, text] of Object.entries({ half: '{"daemon":', null: 'null', other: '{"daemon":"x"}' }))
    writeFileSync(join(state.path, 'daemons', `${name}.json`), text)
  expect(await removeLeftovers(state.path)).toEqual([])
  expect(readdirSync(join(state.path, 'daemons'))).toHaveLength(3)
})

test('a draft of a daemon that died as it wrote its record goes', async () => {
  await using state = await tempDir()
  mkdirSync(join(state.path, 'daemons'))
  writeFileSync(join(state.path, 'daemons', `${newDaemonId()}.json.new`), '{"daemon":')
  expect(await removeLeftovers(state.path)).toEqual([])
  expect(readdirSync(join(state.path, 'daemons'))).toEqual([])
})

test.runIf(isRoot).each([
  ['the folder of records', 'nr_inodes=1', []],
  ['a record', 'nr_inodes=2', ['daemons']],
  ['the bytes of one', 'size=4k', ['daemons']],
])('where there is no room for %s that is a shortage, and nothing of it is left', async (_, room, left) => {
  await using state = await tempDir()
  execFileSync('mount', ['-t', 'tmpfs', '-o', room, 'tmpfs', state.path])
  try {
    if (room.startsWith('size')) writeFileSync(join(state.path, 'filler'), Buffer.alloc(4096))
    expect(() => recordGroups(state.path, newDaemonId(), [])).toThrow(
      expect.objectContaining({
        code: 'ERR_SHORTAGE',
        message: expect.stringMatching(/^the records of daemons cannot be kept in .*daemons \(ENOSPC\): /),
      }),
    )
    expect(readdirSync(state.path, { recursive: true }).filter((name) => name !== 'filler')).toEqual(left)
  } finally {
    execFileSync('umount', [state.path])
  }
})

test.runIf(hostSupport.level !== 'none')('what runs in a dead daemon’s groups is killed', async () => {
  await using state = await tempDir()
  const daemon = newDaemonId()
  const root = createCgroups(hostSupport, daemon)
  const group = root.forInstance(newInstanceId(), { memoryBytes: 2 ** 26, pids: 16, cpu: 1 })
  const child = spawnInside(group.joinFiles, ['/bin/sh', '-c', 'echo up; sleep 60 & sleep 60'])
  await firstLine(child)
  const dead = spawn('/bin/true')
  await once(dead, 'exit')
  recordGroups(state.path, daemon, root.directories)
  const file = join(state.path, 'daemons', `${daemon}.json`)
  writeFileSync(file, readFileSync(file, 'utf8').replace(`"pid":${process.pid}`, `"pid":${dead.pid}`))
  const exit = once(child, 'exit')
  const there = leftOf(root.directories)
  expect(there.length).toBeGreaterThan(0)
  expect(await removeLeftovers(state.path)).toEqual(there)
  expect(await exit).toEqual([null, 'SIGKILL'])
  expect(leftOf(root.directories)).toEqual([])
})

test.each([
  ['a file', (path: string) => writeFileSync(path, '')],
  ['a link to nowhere', (path: string) => symlinkSync('/nowhere/at/all', path)],
])('%s in the place of the records is named, with what to do', async (_what, put) => {
  await using state = await tempDir()
  put(join(state.path, 'daemons'))
  const told = {
    code: 'ERR_RUNTIME_UNSAFE',
    message: `the records of daemons cannot be kept in ${join(state.path, 'daemons')} (EEXIST): expected a folder; move what is there, or name another --state`,
  }
  await expect(removeLeftovers(state.path)).rejects.toMatchObject(told)
  expect(() => recordGroups(state.path, newDaemonId(), [])).toThrow(expect.objectContaining(told))
})
