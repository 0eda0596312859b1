// A process of one call that asks a person: by its server's settings and no other way, as in a session's own process.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { RawCaller } from '../support/raw-caller.ts'

const asks = (more: object = {}): object =>
  fixture('asks-person', { args: ['/app/asks-person.mjs', 'modern'], instance: 'call', ...more })

test.each([
  ['that is off', {}, 'ERR_METHOD_REFUSED'],
  [
    'of a sandboxed server',
    { trust: 'sandboxed', elicitation: { enabled: true }, tools: { allow: ['*'] } },
    'ERR_METHOD_REFUSED',
  ],
  ['that is on', { elicitation: { enabled: true } }, undefined],
])('a question %s', async (_what, more, code) => {
  await using at = await daemon(configOf({ asks: asks(more) }))
  using session = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await session.ask('session/attach', { server: 'asks' })
  const { result, error } = await session.ask('tools/call', {
    name: 'ask',
    arguments: { fields: ['password'] },
  })
  expect(error?.data.code).toBe(code)
  expect(result?.['resultType']).toBe(code === undefined ? 'input_required' : undefined)
  expect(session.lines.some((line) => line.includes('password'))).toBe(code === undefined)
})
