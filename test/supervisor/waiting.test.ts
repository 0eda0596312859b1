// A host whose call waits for a person, in both eras; and a host that goes away while a call is on its way.
import { expect, test } from 'vitest'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { governanceDefaults } from '../support/governance.ts'
import { serverSettings } from '../support/server-settings.ts'

const eras = ['2025-11-25', '2026-07-28'] as const
const rules = [{ permission: 'mcp:*:*', action: 'ask', where: {}, origin: 'rules[0]' }] as const

async function ready(era: (typeof eras)[number], more: Parameters<typeof attach>[1] = {}): Promise<HostEnd> {
  const host = await attach(serverSettings('slow.mjs'), more)
  if (era === '2025-11-25') {
    host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: era } })
    await host.answer('i')
  }
  return host
}

const call = (id: number, meta: object = {}, ms = 60_000) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'wait', arguments: { ms }, _meta: meta },
})

const waiting = (waitMs: number) => ({
  rules,
  settings: { ...governanceDefaults, approval: { ...governanceDefaults.approval, waitMs } },
})
const typesOf = (host: HostEnd): readonly string[] => host.governed.records().map(({ type }) => type)

test.each(eras)(
  'in %s a call that waits shows progress under its own token, and what it waits for',
  async (era) => {
    await using host = await ready(era, waiting(60_000))
    using _listening = { [Symbol.dispose]: host.governed.governance.listen() }
    host.send(call(1, { progressToken: 'tok' }))
    const line = await eventually(() => host.lines.find((one) => one.includes('notifications/progress')))
    expect(JSON.parse(line)).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: {
        progressToken: 'tok',
        progress: expect.any(Number) as number,
        message: expect.stringContaining('approval') as string,
      },
    })
  },
)

test.each(eras)(
  'in %s a call that nobody answers in time is an error of the tool that says so, and is never sent',
  async (era) => {
    await using host = await ready(era, waiting(150))
    using _listening = { [Symbol.dispose]: host.governed.governance.listen() }
    const before = host.lines.length
    host.send(call(1))
    expect(await host.answer(1)).toMatchObject({
      result: {
        isError: true,
        content: [{ type: 'text', text: expect.stringContaining('no operator answered within 150 ms') }],
        _meta: { 'sallyport/error': { data: { code: 'ERR_APPROVAL_TIMEOUT', retryable: true } } },
      },
    })
    expect(host.lines.slice(before)).toHaveLength(1)
    expect(typesOf(host)).not.toContain('call.intent')
  },
)

test.each(eras)('in %s a call is denied at once where no operator listens', async (era) => {
  await using host = await ready(era, waiting(60_000))
  host.send(call(1, { progressToken: 'tok' }))
  expect(await host.answer(1)).toMatchObject({
    result: { isError: true, _meta: { 'sallyport/error': { data: { code: 'ERR_APPROVAL_UNAVAILABLE' } } } },
  })
  expect(host.lines.some((line) => line.includes('notifications/progress'))).toBe(false)
})

test.each(eras)(
  'in %s a host that dies while its call is on its way leaves an outcome, and no server',
  async (era) => {
    await using host = await ready(era)
    host.send(call(1))
    await eventually(() => typesOf(host).includes('call.intent'))
    const pid = (await eventually(() => host.session.views()[0]?.pid)) ?? 0
    host.socket.destroy()
    await host.session.ended
    const outcomes = await eventually(() => {
      const found = host.governed.records().filter(({ type }) => type === 'call.outcome')
      return found.length > 0 && found
    })
    expect(outcomes.map(({ body }) => body)).toMatchObject([{ outcome: 'lost', subject: 'wait' }])
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    expect(host.governed.governance.permits.list()).toEqual([])
  },
)

test.each(eras)(
  'in %s a host that dies while its call waits for a person takes it back: nothing is sent',
  async (era) => {
    await using host = await ready(era, waiting(60_000))
    const { governance } = host.governed
    using _listening = { [Symbol.dispose]: governance.listen() }
    host.send(call(1))
    await eventually(() => governance.approvals.pending().length === 1)
    host.socket.destroy()
    await host.session.ended
    await eventually(() => governance.approvals.pending().length === 0)
    await eventually(() => typesOf(host).includes('call.denied'))
    expect(typesOf(host)).not.toContain('call.intent')
  },
)
