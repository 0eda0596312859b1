// Every input that was of interest once, for every parser again: the ones of C under the sanitizers and under valgrind.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tempDir } from '../support/temp-dir.ts'
import { readCorpus } from './corpus.ts'
import { copyTree, make, programOf, type Ran, ran, unpack } from './native.ts'
import { bytesOf, tryInput } from './target.ts'
import { harnesses, targets } from './targets.ts'

const broken: readonly { harness: string; what: string; file: string; check: string; instead?: string }[] = [
  {
    harness: 'resolver',
    what: 'a label is not held to the packet',
    file: 'resolver.c',
    check: ' || reader->length - reader->at < label',
  },
  {
    harness: 'resolver',
    what: 'a name is not held to 255 bytes',
    file: 'resolver.c',
    check: 'wire > NAME_WIRE_MAX || ',
  },
  {
    harness: 'resolver',
    what: 'a record is not held to the packet',
    file: 'resolver.c',
    check: 'if (reader->length - reader->at < bytes) return false;\n  reader->at',
    instead: 'reader->at',
  },
  {
    harness: 'orders',
    what: 'a number is not held to its frame',
    file: 'frames.c',
    check: 'if (frame->left < bytes)',
    instead: 'if (false)',
  },
  {
    harness: 'gate',
    what: 'a path may be relative',
    file: 'gate.c',
    check: `if (path[0] != '/')`,
    instead: 'if (false)',
  },
  {
    harness: 'gate',
    what: 'a frame may be longer than it says',
    file: 'frames.c',
    check: 'memchr(frame->at, 0, frame->left)',
    instead: 'memchr(frame->at, 0, frame->left + 1)',
  },
  {
    harness: 'container',
    what: 'a server may be root',
    file: 'container.c',
    check: ' || setting.uid == 0',
  },
  {
    harness: 'supervise',
    what: 'a frame is not held to its buffer',
    file: 'supervise.c',
    check: 'if (wanted > 4)',
    instead: 'if (false)',
  },
  {
    harness: 'refusals',
    what: 'a head is not held to its packet',
    file: 'refusals.c',
    check: 'if (length < head + 8) return;',
  },
  {
    harness: 'connects',
    what: 'a path is told as it is',
    file: 'connects.c',
    check: 'strchr(plain, byte) != NULL',
    instead: "plain[0] != '\\0'",
  },
  {
    harness: 'answer',
    what: 'a value is not held to its line',
    file: 'json.c',
    check: 'text->at == text->end || ',
  },
  {
    harness: 'guard',
    what: 'a path is not held to its place',
    file: 'entries.c',
    check: 'if (strlen(path) >= PATH_BYTES)',
    instead: 'if (false)',
  },
]

describe.each(targets)('$name', (target) => {
  test('every input of the corpus holds', async () => {
    const corpus = [...readCorpus(target.name), ...target.seeds.map(bytesOf)]
    expect(readCorpus(target.name).length).toBeGreaterThan(0)
    for (const input of corpus) expect(await tryInput(target, input)).toBeNull()
  })
})

describe('sandbox/init', () => {
  let folder: Awaited<ReturnType<typeof tempDir>>
  /** For each harness what has it run over its corpus */
  let replays: ReadonlyMap<string, readonly string[]>
  beforeAll(async () => {
    folder = await tempDir()
    make(['replay', 'plain'])
    copyTree(folder.path, 'replay')
    replays = new Map(
      harnesses.map(({ name }) => {
        const path = unpack(folder.path, name)
        return [name, [`-${name}`, ...inputsOf(name).map((input) => join(path, input))]]
      }),
    )
  }, 240_000)
  afterAll(() => folder[Symbol.asyncDispose]())

  const inputsOf = (name: string) => readCorpus(name).map((_, index) => String(index).padStart(4, '0'))
  const replay = (name: string, tree?: string) =>
    ran(programOf('replay', tree), replays.get(name) ?? [], 20_000)
  const inOrder = (name: string): string => `-${name} ${readCorpus(name).length}`

  test.each(harnesses)('$name reads and writes nothing out of place', async ({ name }) => {
    const { code, stdout, stderr } = await replay(name)
    expect(code, stderr.slice(-2000)).toBe(0)
    expect(stdout).toBe(`${inOrder(name)}\n`)
    expect(readCorpus(name).length).toBeGreaterThan(10)
  })

  describe('under valgrind, which takes longer to begin than for any of them', () => {
    let all: Ran
    beforeAll(async () => {
      const args = ['-q', '--error-exitcode=99', programOf('plain'), ...[...replays.values()].flat()]
      all = await ran('valgrind', args, 200_000)
    }, 240_000)

    test.each(harnesses)('$name decides by nothing that was never set', ({ name }) => {
      const said = all.stderr.slice(all.stderr.indexOf(`/corpus-${name}/`))
      expect(all.stdout.split('\n'), said.slice(0, 4000)).toContain(inOrder(name))
    })

    test('no other ends but well', () => {
      expect(all.code, all.stderr.slice(-2000)).toBe(0)
    })
  })

  // So that a fault would be found: the same, without one of the parsers' checks.
  test.each(broken)('$harness would find it if $what', async ({ harness, file, check, instead = '' }) => {
    const path = join(folder.path, 'sandbox/init', file)
    const source = readFileSync(path, 'utf8')
    const changed = source.replace(check, instead)
    expect(changed).not.toBe(source)
    writeFileSync(path, changed)
    try {
      make(['replay'], folder.path)
      expect((await replay(harness, folder.path)).code).not.toBe(0)
    } finally {
      writeFileSync(path, source)
    }
  })
})
