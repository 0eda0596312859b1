// Evidence beside the journal that is not there any more is missed by whoever has its record shown.
import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { configOf, daemon, fixture } from '../support/daemon.ts'

test('audit show tells which evidence is missing, replaced or shorter', async () => {
  const at = await daemon(configOf({ plain: fixture('echo') }))
  onTestFinished(() => at[Symbol.asyncDispose]())
  const text = 'x'.repeat(100_000)
  const { call_id: call } = await at.client.call('tools/call', {
    server: 'plain',
    tool: 'echo',
    arguments: { text },
  })
  const shown = async (): Promise<string> => (await at.run(['audit', 'show', call])).stdout
  expect(await shown()).not.toContain('lacks')

  const { records, lacking } = await at.client.call('audit/query', { call })
  expect(lacking).toEqual([])
  const { seq, body } = records.find(({ type }) => type === 'call.outcome') ?? { seq: 0, body: null }
  const { path } = (body as { readonly response: { readonly path: string } }).response
  const file = join(at.stateDir, 'journal', path)
  renameSync(file, `${file}.away`)
  expect(await shown()).toMatch(/response lacks +the file is missing/)
  expect((await at.client.call('audit/query', { seq })).lacking).toEqual([
    { seq, member: 'response', detail: 'the file is missing' },
  ])
  symlinkSync(`${file}.away`, file)
  expect(await shown()).toMatch(/response lacks +it is no plain file/)
  rmSync(file)
  writeFileSync(file, 'short')
  expect(await shown()).toMatch(/response lacks +the file has 5 bytes, the record says \d+/)
  renameSync(`${file}.away`, file)
  expect(await shown()).not.toContain('lacks')
})
