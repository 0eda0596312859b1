// In a process that is shared each request says who speaks, as 2026-07-28 has it: nothing of the connection does.
import { expect, test } from 'vitest'
import { sharing } from '../support/sharing.ts'

/** Parameters of a call that says so much of who makes it. */
const meta = (version: string, capabilities?: string): string => {
  const rest =
    capabilities === undefined ? '' : `,"io.modelcontextprotocol/clientCapabilities":${capabilities}`
  return `{"name":"pid","_meta":{"io.modelcontextprotocol/protocolVersion":${version}${rest}}}`
}

const said = '"2026-07-28"'
/** As servers of 2026-07-28 refuse: another version by what they support, what is not whole as wrong parameters. */
const [unsupported, invalid] = [-32022, -32602]
test.each<[string, string, RegExp, number, string?]>([
  ['no _meta', '{"name":"pid"}', /has no io.modelcontextprotocol.protocolVersion/, unsupported],
  [
    'an empty one',
    '{"name":"pid","_meta":{}}',
    /has no io.modelcontextprotocol.protocolVersion/,
    unsupported,
  ],
  [
    '_meta that is none',
    '{"name":"pid","_meta":[]}',
    /has no io.modelcontextprotocol.protocolVersion/,
    unsupported,
  ],
  [
    'another version',
    meta('"2025-11-25"', '{}'),
    /has "2025-11-25" io.*protocolVersion.*expected "2026-07-28"/,
    unsupported,
    '2025-11-25',
  ],
  [
    'a version that is spelt otherwise',
    meta('"2026-07-2\\u0038"', '{}'),
    /expected "2026-07-28"/,
    unsupported,
  ],
  ['no capabilities', meta(said), /has no io.modelcontextprotocol.clientCapabilities/, invalid],
  ['capabilities that are none', meta(said, '[]'), /expected an object/, invalid],
])('a request with %s does not say who speaks, and reaches nobody', async (...row) => {
  const [, params, reason, code, requested] = row
  await using all = await sharing()
  const host = await all.host()
  host.socket.write(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}\n`)
  const { error } = await host.answer(1)
  expect(error?.code).toBe(code)
  expect(error?.data).toMatchObject({ supported: ['2026-07-28'] })
  expect(error?.data?.['requested']).toBe(requested)
  expect(error?.message).toMatch(reason)
  expect(error?.message).toMatch(/a host of 2026-07-28, .*instance: session/)
  expect(all.launches()).toBe(0)
  expect(await host.call(2, 'pid')).toMatch(/^\d+$/)
})
