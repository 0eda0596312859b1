// A server reaches the files that were declared, and of the rest not even the names.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  attempts,
  bare,
  bareAttempts,
  brokenAttempts,
  confined,
  daemons,
  openOf,
  withoutFilter,
} from '../support/escape.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Reach {
  readonly read: Record<string, string>
  readonly write: Record<string, string>
  readonly root: string[]
  readonly withoutNosuid: string[]
  readonly withoutNodev: string[]
}

let folder: Awaited<ReturnType<typeof tempDir>>
let home: string
let canaries: string[]

beforeAll(async () => {
  folder = await tempDir()
  chmodSync(folder.path, 0o755)
  writeFileSync(join(folder.path, 'canary'), 'canary')
  mkdirSync(join(folder.path, 'granted'))
  writeFileSync(join(folder.path, 'granted', 'document'), 'document')
  home = mkdtempSync(join(homedir(), '.sallyport-test-'))
  writeFileSync(join(home, 'canary'), 'canary')
  canaries = [join(folder.path, 'canary'), join(home, 'canary'), import.meta.filename]
})

afterAll(async () => {
  rmSync(home, { recursive: true })
  await folder[Symbol.asyncDispose]()
})

const hostOnly = [
  '/etc/shadow',
  '/etc/hostname',
  '/etc/machine-id',
  '/root',
  '/var',
  '/run',
  '/boot',
  '/srv',
  '/mnt',
  '/sys',
]
const around = [
  '/proc/1/root/etc',
  '/proc/1/cwd',
  '/proc/self/root/var',
  '/app/../../etc/shadow',
  '/home/user/../../root',
]
const readOnly = [
  '/x',
  '/usr/x',
  '/usr/bin/x',
  '/etc/x',
  '/etc/passwd',
  '/dev/x',
  '/app/x',
  '/sallyport/init',
  '/sallyport/x',
  '/granted/x',
]
const scratch = ['/tmp/x', '/home/user/x', '/dev/shm/x']

describe.each(daemons)('under a daemon of %s', (daemon) => {
  let found: Reach

  beforeAll(async () => {
    const grant = {
      source: join(folder.path, 'granted'),
      target: '/granted',
      access: 'read',
      reason: 'a test',
    }
    const wanted = {
      read: [...canaries, ...hostOnly, ...around, '/granted/document'],
      write: [...readOnly, ...scratch],
    }
    found = JSON.parse(
      await confined(daemon, 'probe-reach.mjs', [JSON.stringify(wanted)], { mounts: [grant] }),
    ) as Reach
  })

  test('a server reads what it was granted and nothing else of the host', () => {
    expect(openOf(found.read)).toEqual(['/granted/document'])
    for (const path of [...canaries, ...hostOnly]) expect(found.read[path], path).toBe('ENOENT')
  })

  test('a server writes its scratch folders and nothing else', () => {
    expect(openOf(found.write).toSorted()).toEqual(scratch.toSorted())
  })

  test('a server finds a root with nothing of the host in it but the runtime', () => {
    expect(found.root.filter((name) => !/^(lib\w*|bin|sbin)$/.test(name))).toEqual([
      'app',
      'dev',
      'etc',
      'granted',
      'home',
      'proc',
      'sallyport',
      'tmp',
      'usr',
    ])
  })

  test('no mount honours setuid bits, and none but the five device nodes honours devices', () => {
    expect(found.withoutNosuid).toEqual([])
    expect(found.withoutNodev.toSorted()).toEqual([
      '/dev/full',
      '/dev/null',
      '/dev/random',
      '/dev/urandom',
      '/dev/zero',
    ])
  })

  test('a server changes no mount', async () => {
    const changes = await attempts(daemon, 'filesystem.')
    expect(Object.keys(changes)).toHaveLength(8)
    expect(openOf(changes)).toEqual([])
  })
})

test('bare, the canaries are read', async () => {
  const { read } = JSON.parse(await bare('probe-reach.mjs', [JSON.stringify({ read: canaries })])) as Reach
  expect(openOf(read)).toEqual(canaries)
})

test('an ordinary user names files by handle, and so would a server without the filter', async () => {
  expect(openOf(await bareAttempts('filesystem.handle'))).toEqual(['filesystem.handle'])
  expect(openOf(await brokenAttempts('filesystem.handle', withoutFilter))).toEqual(['filesystem.handle'])
})
