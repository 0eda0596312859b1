// The head file follows the journal to where it stands, also where it moves while the file is written, or the disk fails.
import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HeadKeeper, readHead } from '../../src/journal/head-file.ts'
import { eventually } from '../support/eventually.ts'
import { tempDir } from '../support/temp-dir.ts'

const key = Buffer.alloc(32)
let folder: Awaited<ReturnType<typeof tempDir>>
let directory: string
beforeEach(async () => {
  folder = await tempDir()
  directory = join(folder.path, 'journal')
})
afterEach(() => folder[Symbol.asyncDispose]())

/** A journal that nobody is told of when it moves. */
const still = () => ({
  head: { seq: 1, hash: 'a' },
  moved: ({ signal }: { readonly signal: AbortSignal }) =>
    new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    }),
})

/** Until it is removed the head can't be written. */
const obstacle = (): string => {
  const path = `${directory}.head.draft`
  mkdirSync(path)
  return path
}

test('what the journal moves while its head is written down is written down, too, though it moves no more', async () => {
  const journal = still()
  await using _keeper = new HeadKeeper(journal, {
    directory,
    key,
    warn: (error) => expect.fail(String(error)),
  })
  journal.head = { seq: 2, hash: 'b' } // the first is being written
  await eventually(() => {
    expect(readHead(directory, key)).toEqual({ seq: 2, hash: 'b' })
    return true
  })
})

test('a head that can’t be written is tried again after a pause until it can, though the journal does not move', async () => {
  let tried = 0
  const journal = still()
  const counted = {
    moved: journal.moved,
    get head() {
      tried += 1
      return journal.head
    },
  }
  const warned: unknown[] = []
  const inTheWay = obstacle()
  await using _keeper = new HeadKeeper(counted, { directory, key, warn: (error) => warned.push(error) })
  const started = performance.now()
  await delay(350)
  expect(tried).toBeLessThan(10 + (performance.now() - started) / 20)
  rmdirSync(inTheWay)
  await eventually(() => {
    expect(readHead(directory, key)).toEqual(journal.head)
    return true
  })
  expect(warned).toHaveLength(1)
})

test('and at the end a last time', async () => {
  const journal = still()
  const warned: unknown[] = []
  const inTheWay = obstacle()
  const keeper = new HeadKeeper(journal, { directory, key, warn: (error) => warned.push(error) })
  await eventually(() => {
    expect(warned).toHaveLength(1)
    return true
  })
  rmdirSync(inTheWay)
  await keeper[Symbol.asyncDispose]()
  expect(readHead(directory, key)).toEqual(journal.head)
})
