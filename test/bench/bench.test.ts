// The benchmark's command line, and what it keeps of a script that fails; what it measures is nobody's to test.
import { spawn, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runScript } from './script-run.ts'
import { byTurns, turnOf } from './turns.ts'
import { heard, until } from './until.ts'

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

test('a script that does not come to its end is ended', async () => {
  const found = await runScript(pathOf('../fixtures/bench/never-ends.ts'), [], 1)
  expect(found).toEqual({ figures: [], failure: 'no end within 0.001 s', isBrokenOff: false })
})

test('--help says what there is, and measures nothing', () => {
  expect(run('bench.ts', '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--only') })
  const script = run('footprint.ts', '--help')
  expect(script).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('[servers = 100] [rounds = 30]'),
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
  ['launch.ts', ['many']],
  ['launch.ts', ['0']],
  ['stop.ts', ['1', '1', '1', '1']],
  ['egress.ts', ['-1']],
  ['swap.ts', ['1.5']],
  ['heavy.ts', ['no such shape']],
])('%s %j is refused by what is taken', (script, args) => {
  const found = run(script, ...args)
  expect(found).toMatchObject({ status: 7, stdout: '', stderr: expect.stringMatching(/: use /) })
  expect(found.stderr).toContain(args.at(-1))
})

test('each round begins with another arm, and has all of them', () => {
  const rounds = [0, 1, 2, 3].map((round) => turnOf(['a', 'b', 'c'], round).join(''))
  expect(rounds).toEqual(['abc', 'bca', 'cab', 'abc'])
})

test('a peer that fails is absent with its reason, and takes nobody’s figures with it', async () => {
  let turns = 0
  const peer = async () => (turns++ < 2 ? 1 : await Promise.reject(new Error('it ended')))
  const ours = { name: 'ours', kind: 'ours', once: () => Promise.resolve(2) } as const
  expect(await byTurns([ours, { name: 'theirs', kind: 'peer', once: peer }], 3)).toEqual([
    { name: 'ours', kind: 'ours', values: [2, 2, 2] },
    { name: 'theirs', kind: 'peer', values: [], absent: 'it failed: it ended' },
  ])
  expect(turns).toBe(3)
  await expect(byTurns([{ ...ours, once: peer }], 1)).rejects.toThrow('it ended')
})

test('a stream that ends before it says anything is not waited for', async () => {
  const { stdout } = spawn('true', { stdio: ['ignore', 'pipe', 'inherit'] })
  await expect(heard(stdout, 'data')).rejects.toThrow('it ended without an answer')
})

test('what never becomes so ends the run with what it was', async () => {
  await expect(until('the pool is full', () => false, 20)).rejects.toThrow(
    'not within 0.02 s: the pool is full',
  )
})
