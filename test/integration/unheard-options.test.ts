// Options that would change nothing where they stand: whoever says them is told, and not believed to have been heard.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'

let at: TestDaemon
beforeAll(async () => {
  at = await daemon(configOf({ echo: fixture('echo') }))
  const entry = fixture('echo', { version: '1', justification: 'a test', tags: [] })
  await writeFile(join(at.folder, 'entry.json'), JSON.stringify(entry), { mode: 0o600 })
})
afterAll(() => at[Symbol.asyncDispose]())

test.each([
  ['add other --entry ENTRY --trust sandboxed', 'leave out --trust, or write that into the file'],
  ['add other --entry ENTRY --allow echo -- more', 'leave out --allow, the arguments, or write'],
  [
    'add other --command node --server-version 1 --justification x --with /usr',
    '--with is for the code of --package',
  ],
  ['declare echo --force', '--force replaces the file of --out FILE'],
  ['hold --name mine --reason now', 'say what is held'],
  ['hold echo --stop --name mine', '--stop takes a server alone'],
  ['hold echo --lineage one --lineage two', '--lineage is given twice'],
  ['audit tail -n 1 --server echo --lines 2', '--lines is given twice'],
  ['permits revoke --server echo --server=other', '--server is given twice'],
  ['declare echo -o ENTRY --out ENTRY', '--out is given twice'],
])('%s', async (said, told) => {
  const args = said.replace('ENTRY', join(at.folder, 'entry.json')).split(' ')
  expect(await at.run(args)).toEqual({ status: 7, stdout: '', stderr: expect.stringContaining(told) })
  await expect(at.client.call('servers/get', { server: 'other' })).rejects.toThrow('other')
})

test.each([
  [['logs', 'echo', '--lines='], '--lines: got ""'],
  [['logs', 'echo', '--lines', ' '], '--lines: got " "'],
  [['audit', 'export', '--after='], '--after: got ""'],
  [['audit', 'tail', '--lines', '0x10'], '--lines: got "0x10"'],
  [['events', '--since='], '--since: got ""'],
  [['call', 'echo', 'echo', '--timeout', '1e3'], '--timeout: got "1e3"'],
  [['call', 'echo', 'echo', '--timeout', '0'], '--timeout: got "0", expected a whole number of ms from 1'],
])('%j: what is no number to a person is none', async (args, told) => {
  expect(await at.run(args)).toEqual({ status: 7, stdout: '', stderr: expect.stringContaining(told) })
})

test('a draft goes to its file also where it is printed as JSON', async () => {
  const file = join(at.folder, 'draft.yaml')
  const { status, stdout } = await at.run(['declare', 'echo', '--json', '--out', file])
  expect([status, await readFile(file, 'utf8')]).toEqual([0, expect.stringContaining('echo')])
  expect(JSON.parse(stdout)).toMatchObject({ declaration: { tools: { echo: {} } } })
})
