// Which bubblewrap is taken and which is refused, before anything of it runs where running it is the danger.
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findBubblewrap } from '../../../src/sandbox/bubblewrap/tool.ts'
import { isShortage } from '../../../src/lib/missing.ts'
import { withoutDescriptors } from '../../support/no-descriptors.ts'
import { tempDir } from '../../support/temp-dir.ts'

/** A program that says it is a version of bubblewrap, and leaves a mark when it runs. */
function fake(folder: string, version: string, mode = 0o755): string {
  const path = join(folder, 'bwrap')
  writeFileSync(path, `#!/bin/sh\n: > ${folder}/ran\necho "bubblewrap ${version}"\n`)
  chmodSync(path, mode)
  return path
}

test('the machine’s own is found, with its version', async () => {
  expect(await findBubblewrap()).toMatchObject({ version: expect.stringMatching(/^\d+\.\d+/), refusal: null })
})

test.each(['0.8.0', '0.11.2', '1.0'])('version %s is taken', async (version) => {
  await using dir = await tempDir()
  const path = fake(dir.path, version)
  expect(await findBubblewrap(['/nonexistent/bwrap', path])).toEqual({ path, version, refusal: null })
})

test.each(['0.7.9', '0.1', 'rubbish'])('version %s is refused', async (version) => {
  await using dir = await tempDir()
  const found = await findBubblewrap([fake(dir.path, version)])
  expect(found?.refusal?.cause).toMatch(/is version .*, expected 0\.8 or later$/)
})

test('one that there is no descriptor to ask with, or that has none itself, is no version that is refused: the machine is short of them', async () => {
  await using dir = await tempDir()
  const path = fake(dir.path, '0.8.0')
  expect(JSON.parse(await withoutDescriptors('tool', path))).toMatchObject({
    message: expect.stringContaining('EMFILE; stop what uses up') as unknown,
    data: { code: 'ERR_SHORTAGE' },
  })
  writeFileSync(path, '#!/bin/sh\necho "bwrap: pipe failed: Too many open files" >&2\nexit 1\n')
  const refused = await findBubblewrap([path]).catch((error: unknown) => error)
  expect(isShortage(refused), String(refused)).toBe(true)
})

test('one with the setuid bit is refused without being run', async () => {
  await using dir = await tempDir()
  const path = fake(dir.path, '0.8.0', 0o4755)
  const refusal = { cause: `${path} has the setuid bit`, mend: `as root: chmod u-s ${path}` }
  expect(await findBubblewrap([path])).toMatchObject({ refusal })
  expect(existsSync(join(dir.path, 'ran'))).toBe(false)
})

test('one that others can replace is refused without being run', async () => {
  await using dir = await tempDir()
  const path = fake(dir.path, '0.8.0', 0o757)
  expect((await findBubblewrap([path]))?.refusal?.cause).toContain(path)
  expect(existsSync(join(dir.path, 'ran'))).toBe(false)
})

test('a machine without one has none', async () => {
  expect(await findBubblewrap(['/nonexistent/bwrap'])).toBeNull()
})
