// The parser of hostile queries under AddressSanitizer and UBSan: not one byte read or written out of place, no odd answer.
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tempDir } from '../../support/temp-dir.ts'

const repository = new URL('../../..', import.meta.url).pathname
const init = join(repository, 'sandbox/init')
const runMs = 3000
let folder: Awaited<ReturnType<typeof tempDir>>

beforeAll(async () => {
  folder = await tempDir()
})
afterAll(() => folder[Symbol.asyncDispose]())

/** Builds the harness with the resolver's source as `change` leaves it, and runs it for a while. */
const fuzz = (name: string, change: (source: string) => string): ReturnType<typeof spawnSync> => {
  const resolver = join(folder.path, `${name}.c`)
  const binary = join(folder.path, name)
  const source = readFileSync(join(init, 'resolver.c'), 'utf8')
  const changed = change(source)
  if (name !== 'whole') expect(changed).not.toBe(source)
  writeFileSync(resolver, changed)
  const sanitizers = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all']
  const beside = ['names.c', 'clock.c'].map((file) => join(init, file))
  const sources = [join(repository, 'test/fixtures/probes/fuzz-resolver.c'), resolver, ...beside]
  execFileSync('cc', [
    '-std=c11',
    '-D_GNU_SOURCE',
    '-O1',
    '-g',
    ...sanitizers,
    '-I',
    init,
    '-o',
    binary,
    ...sources,
  ])
  const seed = String(Math.floor(Math.random() * 2 ** 48))
  return spawnSync(binary, [seed, String(runMs)], { encoding: 'utf8' })
}

test('random and damaged packets are answered or left, and nothing else happens', () => {
  const { status, stdout, stderr } = fuzz('whole', (source) => source)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const [packets = 0, answered = 0] = String(stdout).trim().split(' ').map(Number)
  expect(packets).toBeGreaterThan(10_000)
  expect(answered).toBeGreaterThan(packets / 10)
})

// So that a fault would be found: the same, without one of the parser's checks.
test.each([
  ['a label is not held to the packet', ' || reader->length - reader->at < label', ''],
  ['a name is not held to 255 bytes', 'wire > NAME_WIRE_MAX || ', ''],
  [
    'a record is not held to the packet',
    'if (reader->length - reader->at < bytes) return false;\n  reader->at',
    'reader->at',
  ],
])('it would be found if %s', (_, check, instead) => {
  const { status } = fuzz(`broken-${check.length}`, (source) => source.replace(check, instead))
  expect(status).not.toBe(0)
})
