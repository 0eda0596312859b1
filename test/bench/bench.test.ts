// The benchmark's command line, and what it keeps of a script that fails; what it measures is nobody's to test.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { processesWith } from '../support/leaks.ts'
import { tempDir } from '../support/temp-dir.ts'
import { asData } from './data.ts'
import { type Arm, boundBy, brokenAs, text } from './figures.ts'
import { markdown } from './markdown.ts'
import { page } from './page.ts'
import { allowedOf, twoOf } from './processors.ts'
import { runScript } from './script-run.ts'
import { byTurns, turnOf } from './turns.ts'
import { heard, until } from './until.ts'
import { patienceMs } from '../support/patience.ts'

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

function run(script: string, env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [pathOf(script), ...args], {
    encoding: 'utf8',
    timeout: patienceMs,
    env: { ...process.env, ...env },
  })
  return { status, stdout, stderr }
}

test('figures that were found are kept where what was started could not be ended', async () => {
  const found = await runScript(pathOf('../fixtures/bench/fails-after-figures.ts'), [])
  expect(found).toMatchObject({
    figures: [{ id: 'f' }],
    failure: 'status 1: Error: what was started could not be ended',
    isBrokenOff: false,
  })
})

test.each([
  ['fails-unawaited', 'thrown where nobody waits'],
  ['is-killed', 'SIGKILL'],
])('%s.ts: what it has started and written is gone, and why it ended is kept', async (name, failure) => {
  const { figures, ...found } = await runScript(pathOf(`../fixtures/bench/${name}.ts`), [], { restMs: 200 })
  expect(found).toEqual({ failure, isBrokenOff: false })
  const folder = figures[0]?.what ?? 'no figure'
  expect(folder).toMatch(/\/sp-\w+$/)
  expect(processesWith(`${folder}/`)).toEqual([])
  expect(existsSync(folder)).toBe(false)
})

test.each([
  ['that ends by itself is nobody’s failure', '0.5', 20_000, null],
  ['that stays is ended, and named', '600', 200, 'it left what had to be killed: sh'],
] as const)('what a script leaves %s', async (_, seconds, restMs, failure) => {
  const found = await runScript(pathOf('../fixtures/bench/leaves-one.ts'), [seconds], { restMs })
  expect(found).toMatchObject({ failure })
})

test('a part that fails is not measured, with its reason in every form, and fails the run', async () => {
  await using folder = await tempDir()
  const forms = ['json', 'html', 'markdown'].map((form) => [form, join(folder.path, form)] as const)
  const files = forms.flatMap(([form, path]) => [`--${form}`, path])
  // There is no compiler, which its first act is to look for.
  const found = run('bench.ts', { PATH: '/nowhere' }, '--only', 'sdk-calls', ...files)
  const reason = 'sdk-calls: not measured: spawnSync cc ENOENT'
  expect(found).toMatchObject({ status: 1, stdout: expect.stringContaining(reason) })
  const [data = '', html, markdown] = forms.map(([, path]) => readFileSync(path, 'utf8'))
  expect(JSON.parse(data)).toMatchObject({
    broken: [{ part: 'sdk-calls', reason: 'spawnSync cc ENOENT', figures: 0 }],
  })
  expect([html, markdown]).toEqual([expect.stringContaining(reason), expect.stringContaining(reason)])
})

test('a part that has given figures is said to have failed after them', () => {
  const broken = [{ part: 'launch', reason: 'status 1', figures: 2 }]
  for (const form of [broken.map(brokenAs).join(), markdown([], [], broken), page([], [], broken)]) {
    expect(form).toContain('launch: failed after 2 figures: status 1')
    expect(form).not.toContain('not measured')
  }
  expect(JSON.parse(asData([], [], broken))).toMatchObject({ broken })
})

test('a target is shown with its spread, its bound and the others in every form, and one without a value as not measured', () => {
  const arms: readonly Arm[] = [
    { name: 'bare', kind: 'base', values: [10, 10, 10] },
    { name: 'a pipe', kind: 'bound', values: [11, 12, 13] },
    { name: 'sallyport', kind: 'ours', values: [14, 16, 15] },
    { name: 'theirs', kind: 'peer', values: [20, 20, 22] },
    { name: 'absent', kind: 'peer', values: [], absent: 'no such engine' },
    { name: 'unread', kind: 'ours', values: [] },
  ]
  const judged = (arm: string) =>
    ({ arm, by: 'added', target: 3, bounds: [boundBy('added', arms, 'a pipe')] }) as const
  const figure = {
    id: 'f',
    what: 'a launch',
    unit: 'ms',
    arms,
    judged: [judged('sallyport'), judged('unread')],
  }
  const data = asData([], [figure], [])
  const said = [text(figure), markdown([], [figure], []), page([], [figure], [])]
  for (const form of said) expect(form).toContain('+5 ms (+4 to +6)')
  for (const form of said) expect(form).toContain('a pipe: +2 ms, 2.5 times that')
  for (const form of said) expect(form).toMatch(/absent(: |\s+)not measured[:,] no such engine/)
  for (const form of said.slice(1)) expect(form).toContain('theirs +10 ms')
  expect(said[0]).toContain('unread: no value, target at most 3 ms: not measured')
  expect(said[1]).toContain('**missed**')
  expect(said[1]).toContain('**not measured**')
  expect(JSON.parse(data)).toMatchObject({
    figures: [{ arms: [{ median: 10, spread: [10, 10] }, {}, { median: 15, spread: [14, 16] }, {}, {}, {}] }],
    verdicts: [
      {
        measured: 5,
        spread: [4, 6],
        outcome: 'missed',
        others: ['theirs +10 ms', 'absent: not measured, no such engine'],
      },
      { measured: null, outcome: 'not measured' },
    ],
  })
})

test('two processors of different cores are chosen of those that may be used', () => {
  const threads = (processor: number): readonly number[] => [processor & ~1, processor | 1]
  expect(allowedOf('Cpus_allowed:\tff\nCpus_allowed_list:\t0-2,8,10-11\n')).toEqual([0, 1, 2, 8, 10, 11])
  expect(twoOf([0, 1, 2, 3], threads)).toEqual([0, 2])
  expect(twoOf([5, 9, 10], threads)).toEqual([5, 9])
  expect(twoOf([0, 1, 2], () => [0, 1, 2])).toEqual([0, 1])
  expect(twoOf([0, 1, 2], () => [])).toEqual([0, 1])
})

test('a script that does not come to its end is ended', async () => {
  const found = await runScript(pathOf('../fixtures/bench/never-ends.ts'), [], { limitMs: 1 })
  expect(found).toEqual({ figures: [], failure: 'no end within 0.001 s', isBrokenOff: false })
})

test.each([
  ['stdio', /^it ended without an answer$/],
  ['gateway', /^it was ended by SIGKILL$/],
])('a run that is broken off does not wait for a peer (over %s) that comes up', async (how, reason) => {
  await using folder = await tempDir()
  const peer = join(folder.path, 'peer.mjs')
  writeFileSync(peer, 'setInterval(() => undefined, 1e6)\n')
  const child = spawn(process.execPath, [pathOf('../fixtures/bench/never-up.ts'), how, peer], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  let said = ''
  child.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()))
  await eventually(() => processesWith(`${process.execPath}\0${peer}`).length > 0)
  child.kill('SIGTERM')
  expect(await ended).toEqual([130, null])
  // Not what it says when its time is up.
  expect(said.trim()).toMatch(reason)
  expect(processesWith(peer)).toEqual([])
})

test('--help says what there is, and measures nothing', () => {
  expect(run('bench.ts', {}, '--help')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('--only'),
  })
  const script = run('footprint.ts', {}, '--help')
  expect(script).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('[servers = 100] [rounds = 30]'),
  })
})

test.each([
  [['--onyl', 'launch'], '--only NAME,NAME'],
  [['launch'], '--only NAME,NAME'],
  [['--only', 'lunch'], 'governed-call, sdk-calls, launch, pool'],
  [['--only', ''], 'governed-call, sdk-calls, launch, pool'],
  [['--json', '/nowhere/at/all'], '/nowhere/at/all cannot be written'],
])('%j is refused by what is taken', (args, said) => {
  expect(run('bench.ts', {}, ...args)).toMatchObject({
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
  const found = run(script, {}, ...args)
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
