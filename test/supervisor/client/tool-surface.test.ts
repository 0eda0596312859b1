// What a server may have changed is compared before anything of it is called, by whomever that is asked.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RawJson } from '../../../src/lib/raw-json.ts'
import { eventually } from '../../support/eventually.ts'
import { handled } from '../../support/handled.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller, superviseAll } from '../../support/supervisor.ts'
import { tempDir } from '../../support/temp-dir.ts'

test('no call is sent while the list is on its way for another', async () => {
  await using dir = await tempDir()
  const [record, gate] = [join(dir.path, 'calls'), join(dir.path, 'gate')]
  const settings = serverSettings('held-list.mjs')
  await using all = await superviseAll([{ ...settings, args: [...settings.args, record, gate] }])
  const call = (tool: string) =>
    all.supervisor.call(
      caller(),
      {
        server: 'fixture',
        tool,
        arguments: new RawJson('{}'),
        timeoutMs: null,
        generation: null,
        lineage: null,
      },
      { signal: new AbortController().signal },
    )
  const reached = (): readonly string[] => readFileSync(record, 'utf8').trim().split('\n')
  await call('echo')
  await call('poison')
  const first = handled(expect(call('echo')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' }))
  await eventually(() => reached().includes('list'))
  const second = handled(expect(call('echo')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' }))
  await eventually(() => all.events.filter(({ type }) => type === 'call/started').length === 4)
  writeFileSync(gate, '')
  await Promise.all([first, second])
  expect(reached()).toEqual(['echo', 'poison', 'list'])
})
