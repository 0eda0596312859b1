// The head file follows the journal to where it stands, also where it moves while the file is written.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { HeadKeeper, readHead } from '../../src/journal/head-file.ts'
import { eventually } from '../support/eventually.ts'
import { tempDir } from '../support/temp-dir.ts'

test('what the journal moves while its head is written down is written down, too, though it moves no more', async () => {
  await using folder = await tempDir()
  const [directory, key] = [join(folder.path, 'journal'), Buffer.alloc(32)]
  const { promise: never } = Promise.withResolvers<void>()
  const aborted = (signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  const journal = {
    head: { seq: 1, hash: 'a' },
    moved: ({ signal }: { readonly signal: AbortSignal }) => Promise.race([never, aborted(signal)]),
  }
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
