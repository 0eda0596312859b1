// What a yes for a session covers: the same call made again, and nothing that its server would read otherwise.
import { expect, test } from 'vitest'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { serverSettings } from '../support/server-settings.ts'

const rules = [{ permission: 'mcp:*:*', action: 'ask', where: {}, origin: 'rules[0]' }] as const

/** A session whose call of `echo` with one argument and a counting token, or another request, was approved for the session. */
async function approved(server = serverSettings('echo.mjs'), request = call(1, '')): Promise<HostEnd> {
  const host = await attach(server, { rules })
  const { approvals } = host.governed.governance
  host.governed.governance.listen()
  host.send(request)
  const [asked] = await eventually(() => approvals.pending().length > 0 && approvals.pending())
  const id = asked?.id ?? ''
  approvals.approve(id, '0', approvals.draft(id, 'session', '0'))
  expect((await host.answer(1)).error).toBeUndefined()
  return host
}

const call = (id: number, more: string, args = '{"text":"x"}'): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":${args},"_meta":{"progressToken":${id}${more}}}}`

test('the same call under the next number is not asked about', async () => {
  await using host = await approved()
  host.send(call(2, ''))
  expect((await host.answer(2)).error).toBeUndefined()
  expect(host.governed.governance.approvals.pending()).toEqual([])
})

test.each([
  ['more in _meta', call(2, ',"mode":"force"')],
  ['the same arguments in another order', call(2, '', '{ "text":"x"}')],
  ['the same argument with an escape', call(2, '', '{"text":"\\u0078"}')],
  ['other arguments', call(2, '', '{"text":"y"}')],
])('a call with %s is asked about', async (_, line) => {
  await using host = await approved()
  host.send(line)
  await eventually(() => host.governed.governance.approvals.pending().length === 1)
  expect(host.governed.records().filter(({ type }) => type === 'call.intent')).toHaveLength(1)
})

const request = (id: number, method: string, params: string, more = ''): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params},"_meta":{"progressToken":${id}${more}}}}`

test.each([
  ['resources/read', '"uri":"file:///a"'],
  ['prompts/get', '"name":"first"'],
  ['completion/complete', '"ref":{"type":"ref/prompt","name":"first"},"argument":{"name":"a","value":"b"}'],
])(
  '%s under the next number is not asked about either, and with more in _meta is',
  async (method, params) => {
    await using host = await approved(serverSettings('resources.mjs'), request(1, method, params))
    host.send(request(2, method, params))
    await host.answer(2)
    expect(host.governed.governance.approvals.pending()).toEqual([])
    host.send(request(3, method, params, ',"mode":"force"'))
    await eventually(() => host.governed.governance.approvals.pending().length === 1)
  },
)
