// The code that was registered is the code that runs, file for file, or nothing runs.
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { PackageSettings } from '../../../src/schema/settings.ts'
import { type PackagePin, pinPackage, verifyPackage } from '../../../src/sandbox/program/package.ts'
import { expectRefusal } from '../../support/refusal.ts'
import { trust as repositoryTrust } from '../../support/settings.ts'
import { tempDir } from '../../support/temp-dir.ts'

const trust = { uid: process.getuid?.() ?? -1 }
const isRoot = trust.uid === 0

/** A server of three files, with the node_modules that it resolves from. */
const arrange = async () => {
  const folder = await tempDir()
  const at = (...names: string[]): string => join(folder.path, ...names)
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(at(path)), { recursive: true })
    writeFileSync(at(path), text)
  }
  write('server/package.json', '{"type":"module"}')
  write('server/dist/index.js', 'import "dep"\n')
  write('server/bin/tool', '#!/bin/sh\n')
  chmodSync(at('server/bin/tool'), 0o755)
  write('node_modules/dep/index.js', 'export {}\n')
  const settings: PackageSettings = {
    source: at('server'),
    target: '/app',
    with: [at('node_modules')],
    digest: null,
  }
  return { at, write, settings, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

/** A path whose last part is so many bytes, one for each letter. */
const bytes = (...parts: readonly string[]): Buffer =>
  Buffer.concat([
    Buffer.from(
      parts
        .slice(0, -1)
        .map((part) => `${part}/`)
        .join(''),
    ),
    Buffer.from(parts.at(-1) ?? '', 'latin1'),
  ])

const pin = (settings: PackageSettings): Promise<PackagePin> => pinPackage('probe', settings, trust)
const verify = (pinned: PackagePin): Promise<PackagePin> => verifyPackage(pinned, trust)

describe('a registered package', () => {
  test('has one digest, the same for the same content wherever it lies', async () => {
    await using place = await arrange()
    await using other = await arrange()
    const pinned = await pin(place.settings)
    expect(pinned.digest).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect((await pin(other.settings)).digest).toBe(pinned.digest)
    expect((await pin({ ...place.settings, with: [] })).digest).not.toBe(pinned.digest)
  })

  test('must have the digest that the config states', async () => {
    await using place = await arrange()
    const { digest } = await pin(place.settings)
    expect((await pin({ ...place.settings, digest })).digest).toBe(digest)
    place.write('server/dist/index.js', 'evil\n')
    await expectRefusal(() => pin({ ...place.settings, digest }), 'ERR_PACKAGE_CHANGED', digest)
  })

  test('stays itself while nothing changes, and when only facts of its files do', async () => {
    await using place = await arrange()
    const pinned = await pin(place.settings)
    expect(await verify(pinned)).toBe(pinned)
    utimesSync(place.at('server/dist/index.js'), 1, 1)
    linkSync(place.at('server/dist/index.js'), place.at('elsewhere'))
    utimesSync(place.at('server/dist'), 1, 1)
    const renewed = await verify(pinned)
    expect(renewed).not.toBe(pinned)
    expect(renewed.digest).toBe(pinned.digest)
    expect(await verify(renewed)).toBe(renewed)
  })

  test.each<readonly [string, string, (at: (path: string) => string) => void]>([
    ['an edited file', 'dist/index.js', (at) => appendFileSync(at('server/dist/index.js'), 'evil\n')],
    [
      'an edited dependency',
      'dep/index.js',
      (at) => writeFileSync(at('node_modules/dep/index.js'), 'export 1\n'),
    ],
    ['a new file', 'dist/evil.js', (at) => writeFileSync(at('server/dist/evil.js'), '')],
    ['a new file on top', 'evil.js', (at) => writeFileSync(at('server/evil.js'), '')],
    ['a new folder', 'dist/node_modules', (at) => mkdirSync(at('server/dist/node_modules'))],
    ['a removed file', 'dist/index.js', (at) => rmSync(at('server/dist/index.js'))],
    ['a file made executable', 'dist/index.js', (at) => chmodSync(at('server/dist/index.js'), 0o755)],
    ['a file no longer executable', 'bin/tool', (at) => chmodSync(at('server/bin/tool'), 0o644)],
    [
      'a file replaced by a link',
      'dist/index.js',
      (at) => {
        renameSync(at('server/dist/index.js'), at('old'))
        symlinkSync('../../old', at('server/dist/index.js'))
      },
    ],
    [
      'a file replaced by a folder',
      'dist/index.js',
      (at) => {
        rmSync(at('server/dist/index.js'))
        mkdirSync(at('server/dist/index.js'))
      },
    ],
  ])('with %s is refused, and the file is named', async (_, name, change) => {
    await using place = await arrange()
    const pinned = await pin(place.settings)
    change((path) => place.at(path))
    await expectRefusal(() => verify(pinned), 'ERR_PACKAGE_CHANGED', 'probe', name, 'reload')
  })

  test('edited in place with size and mtime put back is refused', async () => {
    await using place = await arrange()
    const pinned = await pin(place.settings)
    const path = place.at('server/dist/index.js')
    const { atime, mtime } = statSync(path)
    writeFileSync(path, readFileSync(path, 'utf8').replace('dep', 'pwn'))
    utimesSync(path, atime, mtime)
    await expectRefusal(() => verify(pinned), 'ERR_PACKAGE_CHANGED', 'dist/index.js')
  })

  test('whose folder was replaced is refused', async () => {
    await using place = await arrange()
    symlinkSync(place.at('server'), place.at('current'))
    const pinned = await pin({ ...place.settings, source: place.at('current') })
    rmSync(place.at('current'))
    symlinkSync(place.at('node_modules'), place.at('current'))
    await expectRefusal(() => verify(pinned), 'ERR_PACKAGE_CHANGED', 'now leads to')
    rmSync(place.at('current'))
    await expectRefusal(() => verify(pinned), 'ERR_PACKAGE_UNSAFE', 'does not exist')
  })

  test('whose link was given another text is refused', async () => {
    await using place = await arrange()
    symlinkSync('index.js', place.at('server/dist/main.js'))
    const pinned = await pin(place.settings)
    rmSync(place.at('server/dist/main.js'))
    symlinkSync('../bin/tool', place.at('server/dist/main.js'))
    await expectRefusal(() => verify(pinned), 'ERR_PACKAGE_CHANGED', 'dist/main.js')
  })
})

describe('a package is refused', () => {
  test('that the daemon’s user can’t read, by the way to it and below', async () => {
    await using place = await arrange()
    const far = place.at('x'.repeat(300))
    await expectRefusal(
      () => pin({ ...place.settings, source: far }),
      'ERR_PACKAGE_UNSAFE',
      `${far} cannot be read (ENAMETOOLONG)`,
    )
    const path = place.at('server/secret')
    const denied = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', path })
    await expectRefusal(
      () => pinPackage('probe', place.settings, trust, () => Promise.reject(denied)),
      'ERR_PACKAGE_UNSAFE',
      `${path} cannot be read (EACCES)`,
    )
    const short = Object.assign(new Error('EMFILE'), { code: 'EMFILE', path })
    await expect(pinPackage('probe', place.settings, trust, () => Promise.reject(short))).rejects.toBe(short)
  })

  test('that others can write, at any depth or above', async () => {
    await using place = await arrange()
    for (const name of ['server/dist/index.js', 'server/dist', 'server', 'node_modules/dep', '.']) {
      const { mode } = statSync(place.at(name))
      chmodSync(place.at(name), 0o777)
      await expectRefusal(
        () => pin(place.settings),
        'ERR_PACKAGE_UNSAFE',
        place.at(name).replace(/\/\.$/, ''),
      )
      chmodSync(place.at(name), mode)
    }
    await pin(place.settings)
  })

  test('that holds what another user owns', async () => {
    await using place = await arrange()
    const asOther = () => pinPackage('probe', place.settings, { uid: trust.uid + 1 })
    if (!isRoot) {
      await expectRefusal(asOther, 'ERR_PACKAGE_UNSAFE', `uid ${trust.uid}`)
      return
    }
    chownSync(place.at('node_modules/dep/index.js'), 4321, 0)
    await expectRefusal(() => pin(place.settings), 'ERR_PACKAGE_UNSAFE', 'dep/index.js', '4321')
  })

  test('with a link that leaves it, and not with one that stays or leads to the runtime', async () => {
    await using place = await arrange()
    const link = (text: string): void => {
      rmSync(place.at('server/link'), { force: true })
      symlinkSync(text, place.at('server/link'))
    }
    place.write('outside/x.js', '')
    mkdirSync(place.at('server/down'))
    symlinkSync(place.at('node_modules'), place.at('server/down/up'))
    for (const text of [
      '../outside',
      '../outside/x.js',
      place.at('outside'),
      '/dev/stdin',
      '/workspace/x.js',
      '../gone',
      '..',
    ]) {
      link(text)
      await expectRefusal(
        () => pin(place.settings),
        'ERR_PACKAGE_UNSAFE',
        'server/link',
        'outside of the package',
      )
    }
    // Written, this stays; followed, `up` leads to node_modules, and `..` of that is outside.
    link('down/up/../outside/x.js')
    await expectRefusal(() => pin(place.settings), 'ERR_PACKAGE_UNSAFE', 'server/link')
    for (const text of [
      'dist/index.js',
      '../node_modules/dep',
      'gone',
      '/usr/bin/python3',
      place.at('server/dist'),
    ]) {
      link(text)
      await pin(place.settings)
    }
  })

  // Read as text both names are one, and one file would have been read for two; the same of what a link says.
  test.each<readonly [string, (folder: string) => void]>([
    ['has a name that is not UTF-8', (folder) => writeFileSync(bytes(folder, 'a\xff.js'), '')],
    ['is a link to a path that is not UTF-8', (folder) => symlinkSync(bytes('a\xff.js'), join(folder, 'b'))],
  ])('with what %s, though there is a name for which it could be taken', async (why, plant) => {
    await using place = await arrange()
    place.write('server/dist/a\uFFFD.js', '')
    await pin(place.settings)
    plant(place.at('server/dist'))
    await expectRefusal(() => pin(place.settings), 'ERR_PACKAGE_UNSAFE', why)
  })

  test('with a pipe, socket or device in it', async () => {
    await using place = await arrange()
    execFileSync('mkfifo', [place.at('server/dist/pipe')])
    await expectRefusal(() => pin(place.settings), 'ERR_PACKAGE_UNSAFE', 'dist/pipe')
  })

  test.each(['/proc/1', '/proc/sys', '/sys', '/sys/kernel'])(
    'that is %s, of whose files some are never read to their end',
    async (source) => {
      const settings: PackageSettings = { source, target: '/app', with: [], digest: null }
      const what = 'is on a file system of the kernel’s own'
      await expectRefusal(() => pinPackage('probe', settings, { uid: 0 }), 'ERR_PACKAGE_UNSAFE', what)
    },
  )

  test('that holds more than can be read, before it is read', async () => {
    await using place = await arrange()
    truncateSync(place.at('server/dist/index.js'), 2 ** 40)
    await expectRefusal(() => pin(place.settings), 'ERR_PACKAGE_UNSAFE', 'holds more than 8192 MiB')
  })

  test('that does not exist', async () => {
    await using place = await arrange()
    await expectRefusal(
      () => pin({ ...place.settings, with: [place.at('gone')] }),
      'ERR_PACKAGE_UNSAFE',
      'gone',
    )
  })
})

test('a node_modules of thousands of files is digested and verified without holding up the daemon', async () => {
  const folder = join(import.meta.dirname, '../../../node_modules')
  const settings = {
    source: join(folder, '@modelcontextprotocol'),
    target: '/app',
    with: [join(folder, 'typescript'), join(folder, 'vitest')],
    digest: null,
  }
  // Processor time, not the clock: other tests use the machine too.
  const work = { done: false, longestMs: 0 }
  const startMs = threadMs()
  const watching = (async () => {
    for (let last = threadMs(); !work.done; last = threadMs()) {
      await setImmediate()
      work.longestMs = Math.max(work.longestMs, threadMs() - last)
    }
  })()
  const pinned = await pinPackage('probe', settings, repositoryTrust)
  expect(await verifyPackage(pinned, repositoryTrust)).toBe(pinned)
  work.done = true
  await watching
  expect(pinned.trees.reduce((sum, { entries }) => sum + entries.size, 0)).toBeGreaterThan(2_000)
  // Not in milliseconds: machines differ, and in one piece it is all of the work
  expect(work.longestMs).toBeLessThan((threadMs() - startMs) / 4)
})

test('of many packages that are digested at once each turn of the event loop works on one', async () => {
  const source = join(import.meta.dirname, '../../../node_modules/typescript')
  const settings = { source, target: '/app', with: [], digest: null }
  const work = { done: false, turns: 0 }
  const startMs = threadMs()
  const counting = (async () => {
    for (; !work.done; work.turns++) await setImmediate()
  })()
  await Promise.all(Array.from({ length: 16 }, (_, n) => pinPackage(`probe-${n}`, settings, repositoryTrust)))
  work.done = true
  await counting
  // A slice is 2 ms: sixteen in each turn would be 32
  expect(work.turns).toBeGreaterThan((threadMs() - startMs) / 8)
})

const threadMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
