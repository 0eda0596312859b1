// The benchmark's command line, and what it keeps of a script that fails; what it measures is nobody's to test.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runScript } from './script-run.ts'

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

function run(script: string, ...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [pathOf(script), ...args], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { status, stdout, stderr }
}

test('figures that were found are kept where what was started could not be ended', async () => {
  const found = await runScript(pathOf('../fixtures/bench/fails-after-figures.ts'), [])
  expect(found).toMatchObject({ figures: [{ id: 'f' }], failure: 'status 1', isBrokenOff: false })
})

test('--help says what there is, and measures nothing', () => {
  expect(run('bench.ts', '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--only') })
  const script = run('stop.ts', '--help')
  expect(script).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('[servers = 50] [rounds = 3]'),
  })
})

test.each([
  [['--onyl', 'launch'], '--only NAME,NAME'],
  [['launch'], '--only NAME,NAME'],
  [['--only', 'lunch'], 'governed-call, sdk-calls, launch'],
  [['--only', ''], 'governed-call, sdk-calls, launch'],
  [['--json', '/nowhere/at/all'], '/nowhere/at/all cannot be written'],
])('%j is refused by what is taken', (args, said) => {
  expect(run('bench.ts', ...args)).toMatchObject({
    status: 7,
    stdout: '',
    stderr: expect.stringContaining(said),
  })
})

test.each([
  ['stop.ts', ['many']],
  ['stop.ts', ['0']],
  ['stop.ts', ['1', '1', '1', '1']],
  ['swap.ts', ['1.5']],
  ['heavy.ts', ['no such shape']],
])('%s %j is refused by what is taken', (script, args) => {
  const found = run(script, ...args)
  expect(found).toMatchObject({ status: 7, stdout: '', stderr: expect.stringMatching(/: use /) })
  expect(found.stderr).toContain(args.at(-1))
})
