// Test files: each line goes to the profiles that it names, and one that nobody would try is refused.
import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { readAssertions } from '../../src/config/assertion-file.ts'
import { linesOf, refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'

const alone = (profile: string) => ({ profile, server: null })

async function read(text: string, profiles: readonly string[] = ['offline', 'node']) {
  await using dir = await tempDir()
  await writeFile(`${dir.path}/t.yaml`, text)
  return await readAssertions(`${dir.path}/t.yaml`, profiles.map(alone))
}

const file = `version: 1
assertions:
  - { assert: cannot read /etc/shadow, reason: passwords }
  - { assert: cannot exceed pids, reason: bombs, profiles: [off*] }
`

test('a line is for all profiles that are verified, or for those that it names', async () => {
  const found = await read(file)
  expect(found.map((stated) => stated.map(({ text, line }) => `${line} ${text}`))).toEqual([
    ['3 cannot read /etc/shadow', '4 cannot exceed pids'],
    ['3 cannot read /etc/shadow'],
  ])
})

test('a line for servers is for those that it names, under whatever profile, and for no profile by itself', async () => {
  await using dir = await tempDir()
  const line = '  - { assert: must ask write_*, reason: r, servers: [files, "db*"] }'
  await writeFile(`${dir.path}/t.yaml`, `version: 1\nassertions:\n${line}\n`)
  const verified = ['files', 'mail', 'db1', null].map((server) => ({ profile: 'node', server }))
  const found = await readAssertions(`${dir.path}/t.yaml`, verified)
  expect(found.map(({ length }) => length)).toEqual([1, 0, 1, 0])
  const { message } = await refusal(() => readAssertions(`${dir.path}/t.yaml`, [alone('node')]))
  expect(message).toContain('servers: got files, db*, expected one of those that are verified: node')
})

describe('is refused:', () => {
  test.each([
    [
      'a line for a profile that is not verified',
      file,
      ['node'],
      'assertions[1].profiles: got off*, expected one of those that are verified: node',
    ],
    [
      'a line that is none',
      'version: 1\nassertions: [{ assert: read /x, reason: r }]\n',
      ['node'],
      'assertions[0].assert: got "read /x", expected a line that begins one of cannot, can, must',
    ],
    ['a file without a line', 'version: 1\nassertions: []\n', ['node'], 'at least 1 items'],
    ['an unknown key', 'version: 1\nassertion: []\n', ['node'], 'did you mean assertions?'],
  ])('%s', async (_, text, profiles, expected) => {
    expect(linesOf(await refusal(() => read(text, profiles)))).toContain(expected)
  })

  test('a file that is not there', async () => {
    const { code, message } = await refusal(() => readAssertions('/nonexistent/t.yaml', [alone('node')]))
    expect([code, message]).toEqual([
      'ERR_CONFIG_NOT_FOUND',
      expect.stringContaining('/nonexistent/t.yaml: no such file'),
    ])
  })
})
