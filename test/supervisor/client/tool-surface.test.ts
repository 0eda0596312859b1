// What a server may have changed is compared before anything of it is called, by whomever that is asked.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RawJson } from '../../../src/lib/raw-json.ts'
import type { ServerSettings } from '../../../src/schema/settings.ts'
import { eventually } from '../../support/eventually.ts'
import { handled } from '../../support/handled.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller, superviseAll } from '../../support/supervisor.ts'
import { tempDir } from '../../support/temp-dir.ts'

/** One server that holds its list back once its `poison` was called, and what calls it. */
async function stage(timeouts: Partial<ServerSettings['timeouts']> = {}, fixture = 'held-list.mjs') {
  const dir = await tempDir()
  const [record, gate] = [join(dir.path, 'calls'), join(dir.path, 'gate')]
  const settings = serverSettings(fixture)
  const server = {
    ...settings,
    args: [...settings.args, record, gate],
    timeouts: { ...settings.timeouts, ...timeouts },
  }
  const all = await superviseAll([server])
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
  return {
    all,
    call,
    gate,
    reached: (): readonly string[] => readFileSync(record, 'utf8').trim().split('\n'),
    async [Symbol.asyncDispose]() {
      await all[Symbol.asyncDispose]()
      await dir[Symbol.asyncDispose]()
    },
  }
}

test('no call is sent while the list is on its way for another', async () => {
  await using at = await stage()
  const { all, call, gate, reached } = at
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

test('a call that waits for a list that never comes is told that, and not that it keeps changing', async () => {
  await using at = await stage({ initializeMs: 1500 })
  await at.call('echo')
  await at.call('poison')
  await eventually(() => at.reached().includes('list')) // asked for by nobody's call
  await expect(at.call('echo')).rejects.toMatchObject({
    code: 'ERR_INITIALIZE_TIMEOUT',
    message: 'mcp server fixture did not say what it lists within timeouts.initialize_ms (1500)',
  })
})

test('of two lists that come the other way round the one that was asked for last stands', async () => {
  await using at = await stage({ initializeMs: 20_000 }, 'late-list.mjs')
  await at.call('echo')
  await at.call('poison')
  await at.call('echo').catch(() => undefined) // asks what it lists, and waits for the list of before
  await eventually(() => at.reached().filter((line) => line === 'list').length === 2)
  await expect(at.call('echo')).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISMATCH' })
})
