// What the pages on egress and credentials show as files loads as it stands there.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load.ts'
import type { Settings } from '../../src/schema/settings.ts'
import { root } from '../support/source.ts'
import { tempDir } from '../support/temp-dir.ts'

/** The files of a page: each block of YAML begins with its name. */
const filesOf = async (page: string): Promise<readonly (readonly [name: string, text: string])[]> => {
  const blocks = (await readFile(join(root, page), 'utf8')).matchAll(
    /^```yaml\n(# ([\w/.]+)[^\n]*\n[^]*?)^```/gm,
  )
  return [...blocks].map(([, text = '', name = '']) => [name, text])
}

const loaded = async (...pages: readonly string[]): Promise<Settings> => {
  await using dir = await tempDir()
  for (const page of pages)
    for (const [name, text] of await filesOf(page)) {
      await mkdir(dirname(join(dir.path, name)), { recursive: true, mode: 0o700 })
      await writeFile(join(dir.path, name), text, { mode: 0o600 })
    }
  const env = { GITHUB_TOKEN: 'ghp_0123456789abcdefghij' }
  return await loadSettings({
    env,
    home: dir.path,
    uid: process.getuid?.() ?? 0,
    enterprise: join(dir.path, 'none'),
    path: join(dir.path, 'sallyport.yaml'),
  })
}

const host = 'api.github.com'

test('docs/egress.md: the profile and the server’s entry', async () => {
  const { servers, profiles } = await loaded('docs/egress.md')
  expect(servers.get('github')).toMatchObject({ egress: [{ host, port: 443 }], egressWhen: 'calling' })
  expect(profiles.get('github')?.network).toMatchObject({ mode: 'allowlist', allow: [{ host, port: 443 }] })
})

test('docs/credentials.md: the server’s entry, with the profile of docs/egress.md', async () => {
  const { servers } = await loaded('docs/egress.md', 'docs/credentials.md')
  expect(servers.get('github')?.credentials).toMatchObject([
    { use: 'github', inject: 'egress', as: 'GITHUB_TOKEN', placeholder: { prefix: 'ghp_' } },
  ])
})
