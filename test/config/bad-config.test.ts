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
