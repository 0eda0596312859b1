// A daemon whose package is put in another's place while it runs says of itself what it is, not what lies there now.
import { execFileSync } from 'node:child_process'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { tempDir } from '../../support/temp-dir.ts'

test('a refusal names the version that runs, whatever became of its package', async () => {
  await using folder = await tempDir()
  await cp(fileURLToPath(new URL('../../../src', import.meta.url)), join(folder.path, 'src'), {
    recursive: true,
  })
  await writeFile(join(folder.path, 'package.json'), '{"version":"1.2.3","type":"module"}')
  const script = `
    const { rmSync } = await import('node:fs')
    const { expectProtocol } = await import('./src/daemon/methods/protocol-gate.ts')
    rmSync('package.json')
    try { expectProtocol({ protocol: 'other' }) } catch (error) { console.log(error.code, error.message) }`
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: folder.path })
  expect(said.toString()).toMatch(/^ERR_DAEMON_PROTOCOL .*sallyport 1\.2\.3\)/)
})
