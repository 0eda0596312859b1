// A corpus of bad configurations, each with every line that it is refused with.
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load.ts'
import { golden, goldenInput, goldenNames, goldenPath } from '../support/golden.ts'
import { linesOf, refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'

test.each(goldenNames('config'))('%s is refused, with file, line, got, expected and mend', async (name) => {
  await using dir = await tempDir()
  const input = goldenInput('config', name)
  const path = `${dir.path}/sallyport.yaml`
  await writeFile(path, input, { mode: 0o600 })
  const uid = process.getuid?.() ?? 0
  const error = await refusal(() =>
    loadSettings({ path, env: { GITHUB_TOKEN: 'x' }, home: dir.path, uid, enterprise: `${dir.path}/none` }),
  )
  const output = linesOf(error).replaceAll(`${dir.path}/`, '')
  expect(error.message).not.toContain('\n')
  await expect(golden(input, output)).toMatchFileSnapshot(goldenPath('config', name))
})

test('an argument that is too long is refused for its length, beside what else it may not be', async () => {
  await using dir = await tempDir()
  const path = `${dir.path}/sallyport.yaml`
  const servers = { echo: { command: 'node', args: ['x'.repeat(131_073)] } }
  await writeFile(path, JSON.stringify({ version: 1, servers }), { mode: 0o600 })
  const uid = process.getuid?.() ?? 0
  const error = await refusal(() =>
    loadSettings({ path, env: {}, home: dir.path, uid, enterprise: `${dir.path}/none` }),
  )
  expect(linesOf(error)).toContain('expected a string without NUL, of at most 131072 characters')
})
