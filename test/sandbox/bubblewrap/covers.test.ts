// The proof that /proc is covered: a sandbox in which one cover is missing, or is something else, never opens its gate.
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { type BubblewrapPlan, confine } from '../../../src/sandbox/bubblewrap/driver.ts'
import { coverProof } from '../../../src/sandbox/bubblewrap/covers.ts'
import type { ProcMask } from '../../../src/sandbox/bubblewrap/masks.ts'
import { callNumber } from '../../../src/verify/lab/removal.ts'
import { planOf } from '../../support/plan.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { patienceMs } from '../../support/patience.ts'

/** Flags of the two ways in which it mounts files, and nobody else does */
const [bind, close] = [0x1000, 0x1000 | 0x20 | 0x0f]
const covers: readonly ProcMask[] = [
  { path: '/proc/kcore', kind: 'file' },
  { path: '/proc/bus', kind: 'directory' },
]
const report = (dev: bigint, ino: bigint, errno = 0) => ({ dev, ino, errno })
const [device, proc, folder] = [report(6n, 4n), report(40n, 1n), report(41n, 1n)]
const prove = (...found: readonly ReturnType<typeof report>[]): void | undefined =>
  coverProof('files', covers)?.require(found)

test('where each is what covers it, nothing is thrown', () => {
  expect(() => prove(device, proc, device, folder)).not.toThrow()
})

test.each([
  ['a file that is itself', [device, proc, report(40n, 77n), folder], '/proc/kcore'],
  ['a file covered by another device', [device, proc, report(6n, 5n), folder], '/proc/kcore'],
  ['a folder of the kernel’s', [device, proc, device, report(40n, 78n)], '/proc/bus'],
  ['a folder that is not there', [device, proc, device, report(0n, 0n, 2)], '/proc/bus'],
  ['no device to know one by', [report(0n, 0n, 2), proc, report(0n, 0n), folder], '/proc/kcore'],
  ['a report that ends early', [device, proc, device], '/proc/bus'],
])('%s is no cover', (_, found, path) => {
  expect(() => prove(...found)).toThrow(
    expect.objectContaining({
      code: 'ERR_SANDBOX_SETUP',
      details: expect.objectContaining({ target: path }),
    }),
  )
})

test('where nothing is to be covered there is nothing to prove', () => {
  expect(coverProof('files', [])).toBeNull()
})

test('a launcher whose covers are none ends the launch, and what is open is named', async () => {
  await using folder = await tempDir()
  chmodSync(folder.path, 0o755)
  const plan = await planOf(['/bin/true'])
  const [launcher, probes] = [join(folder.path, 'launcher'), join(folder.path, 'probes')]
  symlinkSync(join(dirname(plan.launcher), 'sallyport-probes'), probes) // the clone’s own path may have a space
  // See sandbox/probes/before.c: these calls are not made, and succeed.
  const lines = [
    `#!${probes} --before`,
    plan.launcher,
    'word',
    ...[bind, close].map((flags) => `${callNumber('mount')} 3 ${flags}`),
  ]
  writeFileSync(launcher, lines.map((line) => `${line}\n`).join(''), { mode: 0o755 })
  await expect(confine({ ...plan, launcher }, { signal: AbortSignal.timeout(patienceMs) })).rejects.toThrow(
    /^\/proc\/\S+ is not covered in the sandbox of /,
  )
})

// Whoever covers /proc is below the sandbox tool, and has rights in the sandbox, until it is gone.
const besidePid1 = async (seconds: number): Promise<AsyncDisposable & { readonly plan: BubblewrapPlan }> => {
  // Not below /tmp, which a launcher of root's stages in.
  const folder = mkdtempSync('/var/tmp/sp-')
  chmodSync(folder, 0o755)
  const plan = await planOf(['/bin/true'])
  const tool = join(folder, 'tool')
  const other = `sleep ${seconds} 2>&- 3>&- 4>&- 5>&- 6>&- 7>&-`
  writeFileSync(tool, `#!/bin/sh\n${other} &\nexec ${plan.tool} "$@"\n`, { mode: 0o755 })
  const remove = async (): Promise<void> => rmSync(folder, { recursive: true })
  return { plan: { ...plan, tool }, [Symbol.asyncDispose]: remove }
}

test('a sandbox whose PID 1 is not alone below the tool never opens its gate', async () => {
  await using it = await besidePid1(30)
  await expect(confine(it.plan, { signal: AbortSignal.timeout(patienceMs) })).rejects.toThrow(
    /^2 processes are below bubblewrap /,
  )
})

test('where it is alone in time, it is known', async () => {
  await using it = await besidePid1(1)
  await using sandbox = await confine(it.plan, { signal: AbortSignal.timeout(patienceMs) })
  expect(/^NSpid:.*\t1$/m.test(readFileSync(`/proc/${sandbox.initPid}/status`, 'utf8'))).toBe(true)
})
