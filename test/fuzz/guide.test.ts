// What the search for findings stands on: that what was reached before is told from what was not, and that no input takes it along.
import { expect, test } from 'vitest'
import { Chance } from '../chaos/chance.ts'
import { eventually } from '../support/eventually.ts'
import { Coverage } from './coverage.ts'
import { readCorpus } from './corpus.ts'
import { mutate } from './mutate.ts'
import { bytesOf, tryInput } from './target.ts'
import { canonical } from './targets/json.ts'

test('inputs that reach something new one by one reach nothing new together, however often', async () => {
  const coverage = new Coverage()
  const given = [...readCorpus('canonical'), ...canonical.seeds.map(bytesOf)]
  const chance = new Chance('together')
  const inputs = Array.from({ length: 32 }, () =>
    mutate(chance.pick(given), given, canonical.words, chance, 256),
  )
  for (const input of [...inputs, ...inputs]) {
    await tryInput(canonical, input)
    coverage.hasNew()
  }
  // What else this process is at may reach something meanwhile, and does not for ever.
  await eventually(async () => {
    for (const input of [...inputs.slice(0, 7), ...inputs]) await tryInput(canonical, input)
    return !coverage.hasNew()
  })
})

test('what runs for the first time is new, until it is asked for in earnest', async () => {
  const coverage = new Coverage()
  const plain = bytesOf('[1]')
  for (const input of [plain, plain]) {
    await tryInput(canonical, input)
    coverage.hasNew()
  }
  const own = bytesOf('["\\ud800"]')
  for (const [isPeek, isNew] of [
    [true, true],
    [false, true],
    [false, false],
  ] as const) {
    await tryInput(canonical, own)
    expect(coverage.hasNew(isPeek)).toBe(isNew)
  }
})

test('an input that is never done with is a finding', async () => {
  const target = { ...canonical, run: () => new Promise<void>(() => undefined) }
  expect(await tryInput(target, Buffer.alloc(0))).toMatchObject({
    message: 'one input was not done in 2000 ms',
  })
})
