// What programs were found to be, from one life to the next: believed where every fact of the file is the same, and never else.
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { execFile } from 'node:child_process'
import { expect, test } from 'vitest'
import { silent } from '../../../src/lib/logger.ts'
import type { LogFields } from '../../../src/lib/logger.ts'
import { pinFileKept } from '../../../src/sandbox/program/known-programs.ts'
import { digestFile } from '../../../src/sandbox/program/pinned-file.ts'
import { tempDir } from '../../support/temp-dir.ts'

/** Long enough to be kept, and older than the ten seconds in which a file is not settled. */
const node = await realpath(process.execPath)
const truth = await digestFile(node)
const lie = 'f'.repeat(64)
const changed = (): Error => new Error('changed')

/** Bytes that this process has read so far. */
const bytesRead = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

interface File {
  version: number
  programs: { markers: string[]; facts: string[]; sha256: string }[]
}

/** What a life with that file finds the program to be, and what it logs. */
const found = async (path: string, markers: readonly string[] = []) => {
  const warned: LogFields[] = []
  const read = pinFileKept(path, { ...silent, warn: (fields) => void warned.push(fields) })
  const before = bytesRead()
  const { pin, digested } = await read(node, changed, markers)
  return { pin, digested, warned, share: (bytesRead() - before) / statSync(node).size }
}

/** The file that a life leaves which has read the program. */
const left = await (async (): Promise<string> => {
  await using folder = await tempDir()
  const path = join(folder.path, 'programs.json')
  await pinFileKept(path, silent)(node, changed)
  return readFileSync(path, 'utf8')
})()

/** The same with a lie in it, by which one sees whether it is believed. */
const writeLie = (path: string, facts: (facts: string[]) => void = () => undefined): void => {
  const file = JSON.parse(left) as File
  const [one] = file.programs
  if (one === undefined) throw new Error('nothing is kept')
  one.sha256 = lie
  facts(one.facts)
  writeFileSync(path, JSON.stringify(file), { mode: 0o600 })
}

test('a program that was read in one life is not read in the next', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'programs.json')
  const first = await found(path)
  expect(first.share).toBeGreaterThan(0.99)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const second = await found(path)
  expect(second.share).toBeLessThan(0.01)
  expect(second.pin).toEqual(first.pin)
  expect(second.digested).toEqual(first.digested)
  expect(second.pin.sha256).toBe(truth.sha256)
  expect(second.digested.head).toEqual(truth.head)
})

test.each(['device', 'inode', 'size', 'mtime', 'ctime'])('it is read where its %s differs', async (fact) => {
  await using folder = await tempDir()
  const path = join(folder.path, 'programs.json')
  const at = ['device', 'inode', 'size', 'mtime', 'ctime'].indexOf(fact)
  writeLie(path)
  expect((await found(path)).pin.sha256).toBe(lie) // so it is the fact that makes the difference
  writeLie(path, (facts) => (facts[at] = String(BigInt(facts[at] ?? 0) + 1n)))
  expect((await found(path)).pin.sha256).toBe(truth.sha256)
})

test('it is read for what else is looked for in it', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'programs.json')
  writeFileSync(path, left, { mode: 0o600 })
  expect((await found(path, ['marker'])).share).toBeGreaterThan(0.99)
})

test('a program that changed within the last seconds is not kept: it may change again in the same tick', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'programs.json')
  const program = join(folder.path, 'program')
  writeFileSync(program, Buffer.alloc(5 << 20, 'a'))
  const read = pinFileKept(path, silent)
  await read(program, changed)
  await read(node, changed) // which is kept, after whatever was before it
  const text = readFileSync(path, 'utf8')
  expect((JSON.parse(text) as { programs: { path: string }[] }).programs.map((one) => one.path)).toEqual([
    node,
  ])
})

test.each<[string, (path: string) => void | Promise<unknown>]>([
  ['is no JSON', (path) => writeFileSync(path, '{"version":1,')],
  ['is of another version', (path) => writeFileSync(path, '{"version":2,"programs":[]}')],
  ['holds something else', (path) => writeFileSync(path, '{"version":1,"programs":[{"path":"/"}]}')],
  ['others may write', (path) => chmodSync(path, 0o622)],
  [
    'is a link',
    (path) => promisify(execFile)('mv', [path, `${path}.real`]).then(() => symlinkSync(`${path}.real`, path)),
  ],
  ['is a pipe', (path) => promisify(execFile)('sh', ['-c', `rm "$0" && mkfifo -m 600 "$0"`, path])],
  ['is too long', (path) => writeFileSync(path, ' '.repeat((1 << 17) + 1))],
])('where the file %s, programs are read, and that is said', async (_, spoil) => {
  await using folder = await tempDir()
  const path = join(folder.path, 'programs.json')
  writeLie(path)
  await spoil(path)
  const { pin, warned } = await found(path)
  expect(pin.sha256).toBe(truth.sha256)
  expect(warned).toHaveLength(1)
})

test('what whoever was killed as it wrote left is taken away, and in nobody’s way', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'programs.json')
  writeFileSync(`${path}.draft`, '{"version":1,"pro')
  await found(path)
  expect(readdirSync(folder.path)).toEqual(['programs.json'])
  expect((await found(path)).share).toBeLessThan(0.01)
})

test('where it can not be written, nothing fails', async () => {
  await using folder = await tempDir()
  const { pin, warned } = await found(join(folder.path, 'none', 'programs.json'))
  expect(pin.sha256).toBe(truth.sha256)
  expect(warned).toEqual([])
})
