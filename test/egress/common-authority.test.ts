// The authority that tests share: what could not be made once is made for the next test that asks.
import { expect, test, vi } from 'vitest'
import { tempDir } from '../support/temp-dir.ts'

/** While no program is found by its name. */
async function withoutPrograms<T>(act: () => Promise<T>): Promise<T> {
  const before = process.env['PATH']
  process.env['PATH'] = '/nonexistent'
  try {
    return await act()
  } finally {
    process.env['PATH'] = before
  }
}

test('a failure of openssl is that of one test, not of all after it', async () => {
  vi.resetModules() // others in this process may have one
  const { commonAuthority } = await import('../support/certificates.ts')
  await using folder = await tempDir()
  await expect(withoutPrograms(() => commonAuthority(folder.path))).rejects.toThrow('ENOENT')
  const authority = await commonAuthority(folder.path)
  await expect(withoutPrograms(() => authority.issue('localhost'))).rejects.toThrow('ENOENT')
  const { cert } = await authority.issue('localhost')
  expect(cert).toContain('BEGIN CERTIFICATE')
  expect(await authority.issue('localhost')).toEqual({ cert, key: expect.any(String) })
})
