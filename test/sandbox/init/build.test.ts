// The C programs are built wherever somebody cloned.
import { execFileSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { tempDir } from '../../support/temp-dir.ts'

const repository = fileURLToPath(new URL('../../..', import.meta.url))

it('a clone may lie in a folder with spaces and letters of any language', async () => {
  await using folder = await tempDir()
  const clone = join(folder.path, 'mein Klön $x')
  for (const part of ['sandbox', 'src/errors.ts'])
    cpSync(join(repository, part), join(clone, part), { recursive: true })
  const said = execFileSync('make', ['-n', '-C', join(clone, 'sandbox')], { encoding: 'utf8' })
  for (const program of ['init', 'probes', 'observe'])
    expect(said).toMatch(new RegExp(`new=../dist/libexec/[a-z0-9]+/sallyport-${program}\\.`))
})
