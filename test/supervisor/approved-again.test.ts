// What a yes for a session covers: the same call made again, and nothing that its server would read otherwise.
import { expect, test } from 'vitest'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { serverSettings } from '../support/server-settings.ts'

const rules = [{ permission: 'mcp:*:*', action: 'ask', where: {}, origin: 'rules[0]' }] as const

/** A session whose call of `echo` with one argument and a counting token was approved for the session. */
async function approved(): Promise<HostEnd> {
  const host = await attach(serverSettings('echo.mjs'), { rules })
  const { approvals } = host.governed.governance
  host.governed.governance.listen()
  host.send(call(1, ''))
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
