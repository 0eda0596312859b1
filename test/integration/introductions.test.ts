// A server of the later era says who it is when it is asked: it is compared by that, whoever asks it first, and whether its host does.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import type { TestDaemon } from '../support/daemon.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { bodiesOf } from '../support/witness.ts'

const server = fixture('changes', { args: ['/app/changes.mjs', '/tmp/record', 'Be kind.', 'modern'] })
const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

async function session(at: TestDaemon, asks: boolean): Promise<void> {
  using host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await host.ask('session/attach', { server: 'fixture' })
  if (asks)
    expect((await host.ask('server/discover', { _meta })).result).toMatchObject({ instructions: 'Be kind.' })
  const call = { name: 'echo', arguments: {}, _meta }
  expect((await host.ask('tools/call', call)).error).toBeUndefined()
  expect((await host.ask('prompts/get', { name: 'hello', _meta })).error).toBeUndefined()
}

const doors: Readonly<Record<string, (at: TestDaemon) => Promise<void>>> = {
  'a control call': async (at) => {
    await at.client.call('tools/call', { server: 'fixture', tool: 'echo', arguments: {} })
  },
  'a session whose host asks': (at) => session(at, true),
  'a session whose host does not': (at) => session(at, false),
}

test.each(Object.keys(doors))('first by %s', async (first) => {
  await using at = await daemon(configOf({ fixture: server }))
  await doors[first]?.(at)
  for (const door of Object.values(doors)) await door(at)
  expect(bodiesOf(at.stateDir, 'surface.accepted')).toHaveLength(1)
  expect(bodiesOf(at.stateDir, 'surface.changed')).toEqual([])
})
