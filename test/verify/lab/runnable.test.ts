// A hardened machine lets no program run in /tmp: the probes' is put elsewhere then, and a verification finds what it finds without.
import { execFile } from 'node:child_process'
import { chmod, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { Verification } from '../../../src/verify/result.ts'
import { patienceMs } from '../../support/patience.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { isSound } from '../../support/verification.ts'

const script = fileURLToPath(new URL('../../support/run-verify.ts', import.meta.url))

/** Verifies a part of a profile where nothing in these folders may be executed. */
const verifyWithout = async (...shut: readonly string[]): Promise<string> => {
  const mounts = shut.map((folder) => `mount -t tmpfs -o noexec,mode=1777 shut ${folder} && `)
  const inside = [...'--mount --propagation private sh -c'.split(' '), `${mounts.join('')} exec "$@"`, 'sh']
  const command = [process.execPath, script, 'offline', 'once:user-mapping']
  return (await promisify(execFile)('unshare', [...inside, ...command], { timeout: patienceMs })).stdout
}

test.each([
  ['may have spaces in its path', 'with spaces', 'launcher'],
  ['may be a link', 'link', 'no-new-privileges'],
  ['may have letters of any language in its path', 'Ordner für Klöns', 'first-process'],
])('a temporary folder %s', async (_, name, control) => {
  await using folder = await tempDir()
  await chmod(folder.path, 0o755)
  for (const made of ['with spaces', 'Ordner für Klöns'])
    await mkdir(join(folder.path, made), { mode: 0o755 })
  await symlink('/var/tmp', join(folder.path, 'link'))
  const env = { ...process.env, TMPDIR: join(folder.path, name) }
  const command = [script, 'offline', `once:${control}`]
  const { stdout } = await promisify(execFile)(process.execPath, command, { env, timeout: patienceMs })
  const { probes } = JSON.parse(stdout) as Verification
  expect(probes.length).toBeGreaterThan(0)
  expect(probes.filter(({ verdict }) => !isSound(verdict))).toEqual([])
})

// Only root mounts.
describe.runIf(process.getuid?.() === 0)('where no program may be executed', () => {
  test('in /tmp, one is put into /var/tmp', async () => {
    const { probes } = JSON.parse(await verifyWithout('/tmp')) as Verification
    expect(probes.length).toBeGreaterThan(0)
    expect(probes.filter(({ verdict }) => !isSound(verdict))).toEqual([])
  })

  test('in /tmp, and /var/tmp takes no file, the error says so, and what helps', async () => {
    const said = verifyWithout('/tmp', '-o ro /var/tmp').catch((error: { stderr: string }) => error.stderr)
    expect(await said).toContain('no program can be executed in /tmp: mounted noexec')
  })

  test('in neither, the error says so, and what helps', async () => {
    const said = verifyWithout('/tmp', '/var/tmp').catch((error: { stderr: string }) => error.stderr)
    expect(await said).toContain(
      'no program can be executed in /tmp or /var/tmp: mounted noexec, or with a space in its path; one is put there for this, so set TMPDIR to a folder in which programs may run',
    )
  })
})
