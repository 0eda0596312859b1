// Runs once around all tests: the folder of the compiled probes, which every user can read, and which goes away.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Variable by which the tests, and what they start, find the folder. */
export const probeFolderVariable = 'SALLYPORT_TEST_PROBES'

export function setup(): void {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-probes-'))
  chmodSync(folder, 0o755)
  process.env[probeFolderVariable] = folder
}

export function teardown(): void {
  rmSync(process.env[probeFolderVariable] ?? '', { recursive: true, force: true })
}
