// Of what is owed the newest that any path took is inherited, whichever took no more.
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Debt, OwedFile } from '../../../src/daemon/governance/owed-file.ts'
import { redactor } from '../../../src/daemon/redactor.ts'
import { seal } from '../../../src/journal/sealed.ts'
import { tempDir } from '../../support/temp-dir.ts'

const key = Buffer.alloc(32, 7)
let folder: Awaited<ReturnType<typeof tempDir>>
let paths: readonly string[]
beforeEach(async () => {
  folder = await tempDir()
  paths = ['state', 'runtime'].map((name) => join(folder.path, name))
})
afterEach(() => folder[Symbol.asyncDispose]())

const fileOf = (): OwedFile =>
  new OwedFile({ paths, key, redactor, warn: (what, error) => expect.fail(`${what}: ${error.message}`) })

const owedBy = (server: string): Debt => ({
  fact: {
    type: 'server.quarantined',
    body: { server, origin: null, owner: null, failure: 'MP-FH-008', reason: 'it reached out' },
  },
  evidence: {},
})
const [one, two, three] = ['one', 'two', 'three'].map(owedBy) as [Debt, Debt, Debt]

/** Writes as one path fails. */
function writeWithout(path: string, file: OwedFile, debts: readonly Debt[]): void {
  mkdirSync(`${path}.draft`)
  file.write(debts)
  rmdirSync(`${path}.draft`)
}

test.each([0, 1])('what path %i did not take is inherited from the other, though it is no longer', (n) => {
  const file = fileOf()
  file.write([one, two])
  writeWithout(paths[n] ?? '', file, [three])
  expect(fileOf().read()).toEqual({ debts: [three], refused: [] })
})

test('so it is of what a next life writes, which goes on from what it inherited', () => {
  const first = fileOf()
  for (const debts of [[one], [one], [one, two]]) first.write(debts)
  const next = fileOf()
  expect(next.read().debts).toEqual([one, two])
  writeWithout(paths[0] ?? '', next, [three])
  expect(fileOf().read().debts).toEqual([three])
})

test('a file of an earlier version is read, and gives way to what is written since', () => {
  for (const [n, debts] of [[one], [one, two]].entries())
    writeFileSync(paths[n] ?? '', seal('owed', `"debts":${JSON.stringify(debts)}`, key))
  const file = fileOf()
  expect(file.read().debts).toEqual([one, two])
  writeWithout(paths[1] ?? '', file, [three])
  expect(fileOf().read().debts).toEqual([three])
})
