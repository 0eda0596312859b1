// sallyport verify on a machine that holds no share of the processors: what it says and how it ends, with --strict and without.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { hostSupport } from '../support/cgroup-host.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot } from '../support/user.ts'

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Covers the control groups for one command of root's; an ordinary user has it as his machine is. */
const ungrouped = isRoot
  ? [
      'unshare',
      '--mount',
      '--propagation=private',
      'sh',
      '-c',
      'mount -t tmpfs none "$0" && exec "$@"',
      '/sys/fs/cgroup',
    ]
  : []
const isHeld = !isRoot && hostSupport.bases.cpu !== null

const verify = async (
  ...args: readonly string[]
): Promise<{ readonly status: unknown; readonly out: string; readonly err: string }> => {
  await using home = await tempDir()
  const [program = '', ...command] = [
    ...ungrouped,
    process.execPath,
    cli,
    'verify',
    '--profile',
    'offline',
    ...args,
  ]
  return await new Promise((resolve) => {
    const env = { HOME: home.path, PATH: process.env['PATH'] }
    const settings = { env, maxBuffer: 1 << 24 }
    execFile(program, command, settings, (error, out, err) =>
      resolve({ status: error === null ? 0 : error.code, out, err }),
    )
  })
}

test('what nothing holds is 0 with a warning, and 4 to whoever is strict; what does not apply is neither', async () => {
  const [plain, strict] = await Promise.all([verify(), verify('--strict', '--format', 'tap')])
  if (isHeld) {
    expect([plain.status, strict.status]).toEqual([0, 0])
    return
  }
  expect([plain.status, plain.err]).toEqual([0, expect.stringContaining('and --strict, which fails it')])
  expect(plain.out).toMatch(
    /^WARN offline: .*\nWARN NOT ENFORCED on this machine: 102 resources\.cpu\n {5}do not apply, \d+: .*146 /,
  )
  expect([strict.status, strict.out, strict.err]).toEqual([
    4,
    expect.stringMatching(/^ {4}not ok \d+ - resources\.cpu: /m),
    expect.not.stringContaining('which fails it'),
  ])
  expect(strict.out.match(/^ {4}not ok /gm)).toHaveLength(1)
  expect(strict.out).toMatch(/^ {4}ok \d+ - capabilities\.ordered: .* # SKIP does not apply: /m)
})
