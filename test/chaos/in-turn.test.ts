import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { isRoot } from '../support/user.ts'
import { seedsOf } from './in-turn.ts'
import type { Finding } from './seeds.ts'
import { patienceMs } from '../support/patience.ts'

const finding = (as: Finding['as'], seed: number | null): Finding => ({ as, seed, found: '', tests: {} })

test('the known seeds are those that failed for whoever runs them, each once', () => {
  const found = [
    finding('root', 1),
    finding('an ordinary user', 2),
    finding('either', 3),
    finding('either', null),
    finding('either', 3),
  ]
  expect(seedsOf('known', found)).toEqual(isRoot ? ['1', '3'] : ['2', '3'])
  expect(seedsOf('7, 105', found)).toEqual(['7', '105'])
  expect(() => seedsOf('', found)).toThrow('expected known')
  expect(() => seedsOf('known', [])).toThrow('expected known')
})

/** Runs seeds of a program that ends as its seed says, in a process of its own. */
function run(seeds: readonly string[]): { status: number | null; last: readonly string[] } {
  const module = new URL('./in-turn.ts', import.meta.url).href
  const program = `
    const seed = process.argv.at(-1)
    if (seed === '1') console.log('BROKEN flat: memory\\nBROKEN files: no file')
    process.exit(Number(seed))`
  const script = `
    import { inTurn } from ${JSON.stringify(module)}
    const argv = [process.execPath, '-e', ${JSON.stringify(program)}, '--']
    process.exitCode = await inTurn(${JSON.stringify(seeds)}, argv, { signal: new AbortController().signal })`
  const args = ['--input-type=module', '-e', script]
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: patienceMs })
  return { status, last: stdout.trim().split('\n').slice(-seeds.length) }
}

test('each seed ends with a line, and any that failed is the status of all', () => {
  expect(run(['0', '1', '2', '9'])).toEqual({
    status: 1,
    last: [
      'seed 0: held',
      'seed 1: broke flat, files',
      'seed 2: nothing is proven',
      'seed 9: failed with status 9',
    ],
  })
  expect(run(['0', '2'])).toEqual({ status: 2, last: ['seed 0: held', 'seed 2: nothing is proven'] })
  expect(run(['0'])).toEqual({ status: 0, last: ['seed 0: held'] })
})

test('what may be said of a run is told, and nothing is run', () => {
  const chaos = fileURLToPath(new URL('chaos.ts', import.meta.url))
  const { status, stdout } = spawnSync(process.execPath, [chaos, '--help'], { encoding: 'utf8' })
  expect(status).toBe(0)
  for (const option of ['--seconds', '--seed S', '--seeds known', '--keep', '--only', '--plant'])
    expect(stdout).toContain(option)
})
