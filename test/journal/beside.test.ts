// What lies beside the journal, and is not what was put there: a key that is lost, files that are no files any more.
import { execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { OwedFile } from '../../src/daemon/governance/owed-file.ts'
import { redactor } from '../../src/daemon/redactor.ts'
import { headPath, readHead } from '../../src/journal/head-file.ts'
import { loadKey } from '../../src/journal/key.ts'
import { segmentPath } from '../../src/journal/segments.ts'
import { readSnapshots, snapshotPath } from '../../src/journal/snapshot.ts'
import { UncutNote } from '../../src/journal/uncut.ts'
import { faults } from '../support/fault.ts'
import { tempDir } from '../support/temp-dir.ts'

const source = new URL('../../src/journal/key.ts', import.meta.url).href
const key = new Uint8Array(32).fill(7)
let folder: Awaited<ReturnType<typeof tempDir>>
let directory: string

beforeEach(async () => {
  folder = await tempDir()
  directory = join(folder.path, 'journal')
  mkdirSync(directory)
})
afterEach(() => folder[Symbol.asyncDispose]())

describe('a key', () => {
  test('is made once, for nobody else to read', async () => {
    const path = join(folder.path, 'journal.key')
    const made = await loadKey(path, directory)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    writeFileSync(segmentPath(directory, 1), '')
    expect(await loadKey(path, directory)).toEqual(made)
  })

  test('leaves nothing of starts that were killed as they made it, and nothing else is taken for that', async () => {
    const path = join(folder.path, 'journal.key')
    const drafts = [1, 2].map(() => `${path}.${randomUUID()}`)
    const [empty = '', whole = ''] = drafts
    const others = [`${path}.old`, `${path}.${randomUUID()}.bak`, join(folder.path, `other.${randomUUID()}`)]
    for (const one of [empty, ...others]) writeFileSync(one, '', { mode: 0o600 })
    const linked = `${path}.${randomUUID()}`
    symlinkSync(`${path}.old`, linked)
    mkdirSync(`${path}.${randomUUID()}`)
    const made = await loadKey(path, directory)
    linkSync(path, whole)
    writeFileSync(segmentPath(directory, 1), '')
    const count = readdirSync(folder.path).length
    expect(await loadKey(path, directory)).toEqual(made)
    expect(readdirSync(folder.path)).toHaveLength(count - 1)
    expect(drafts.filter((one) => existsSync(one))).toEqual([])
    expect([...others, linked].filter((one) => !existsSync(one))).toEqual([])
  })

  test('is one for all that begin at once, though each removes what the others had begun', async () => {
    const path = join(folder.path, 'journal.key')
    for (let round = 0; round < 50; round++) {
      rmSync(path, { force: true })
      const keys = await Promise.all(Array.from({ length: 8 }, () => loadKey(path, directory)))
      expect(new Set(keys.map((one) => Buffer.from(one).toString('hex'))).size).toBe(1)
    }
    expect(readdirSync(folder.path)).toEqual(['journal', 'journal.key'])
  })

  test('that is lost is not made anew while there is a journal that was written with it', async () => {
    const path = join(folder.path, 'journal.key')
    writeFileSync(segmentPath(directory, 1), '')
    await expect(loadKey(path, directory)).rejects.toMatchObject({
      code: 'ERR_JOURNAL_KEY',
      message: expect.stringContaining(`${path} is missing, and ${directory} was written with it`),
    })
    expect(existsSync(path)).toBe(false)
    rmSync(directory, { recursive: true })
    expect(await loadKey(path, directory)).toHaveLength(32)
  })

  test('is neither made nor taken where nobody can look whether there is a journal', async () => {
    const path = join(folder.path, 'journal.key')
    rmSync(directory, { recursive: true })
    symlinkSync(directory, directory)
    await expect(loadKey(path, directory)).rejects.toMatchObject({
      code: 'ERR_JOURNAL',
      message: expect.stringContaining(`${directory} (ELOOP)`),
    })
    expect(existsSync(path)).toBe(false)
  })

  test('that can’t be read is told of by name', async () => {
    const path = join(folder.path, 'journal.key')
    symlinkSync(path, path)
    await expect(loadKey(path, directory)).rejects.toMatchObject({
      code: 'ERR_JOURNAL_KEY',
      message: expect.stringContaining(`${path} cannot be trusted: it cannot be read (ELOOP)`),
    })
  })

  test('is of use once its name is on the disk, before anything is written with it', async () => {
    const path = join(folder.path, 'journal.key')
    const fault = faults(folder.path)
    const program = `const { loadKey } = await import(${JSON.stringify(source)})
      console.log(await loadKey(...process.argv.slice(1)).then(({ length }) => length, ({ code }) => code))`
    const load = (): string =>
      execFileSync(process.execPath, ['--input-type=module', '--eval', program, path, directory], {
        env: fault.env,
        encoding: 'utf8',
      }).trim()
    fault.arm({ folder: 'EIO' })
    for (const _again of [1, 2]) expect(load()).toBe('ERR_JOURNAL') // also the one that is there from the first time
    fault.disarm()
    expect(load()).toBe('32')
    writeFileSync(segmentPath(directory, 1), '')
    fault.arm({ folder: 'EIO' })
    expect(load()).toBe('32')
  })

  test('that another process makes meanwhile, and begins the journal with, is not lost', async () => {
    const path = join(folder.path, 'journal.key')
    const loading = loadKey(path, directory)
    for (const end = performance.now() + 100; performance.now() < end;); // it finds none, and goes on once we wait
    writeFileSync(path, key, { mode: 0o600 })
    writeFileSync(segmentPath(directory, 1), '')
    expect([...(await loading)]).toEqual([...key])
  })
})

describe('a pipe in the place of a file is named, and nobody waits for it:', () => {
  const reason = 'it is no plain file: something was put in its place'
  const path = (): string => join(folder.path, 'note')
  const note = (): UncutNote => new UncutNote([path()], key)

  test.each<[string, () => string, () => unknown, unknown]>([
    ['the head', () => headPath(directory), () => readHead(directory, key), { reason }],
    [
      'a snapshot',
      () => (mkdirSync(join(directory, 'snapshots')), snapshotPath(directory, 1)),
      () => readSnapshots(directory, key),
      [expect.objectContaining({ reason })],
    ],
    [
      'what is owed',
      path,
      () => new OwedFile({ paths: [path()], key, redactor, warn: () => undefined }).read(),
      { debts: [], refused: [expect.objectContaining({ reason })] },
    ],
    ['what could not be cut off', path, () => note().settle(directory), undefined],
  ])('%s', (_, place, read, expected) => {
    const pipe = place()
    execFileSync('mkfifo', [pipe])
    // Whoever waits for it gets something, and the end of it.
    const writer = spawn('sh', ['-c', 'echo "junk" > "$1"', 'sh', pipe], { stdio: 'ignore' })
    try {
      expect(read()).toEqual(expected)
      expect(existsSync(pipe)).toBe(true)
    } finally {
      writer.kill()
    }
  })
})
