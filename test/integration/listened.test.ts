// A subscription to several resources, of which a person is asked one after another: it is sent when all of it holds at once.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { elapsed } from '../support/instants.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { speaker } from '../support/speaker.ts'
import { watching } from '../support/watching.ts'
import { bodiesOf } from '../support/witness.ts'

const [first, second] = ['note://first', 'note://second']
const asks = [
  { permission: 'mcp:shares:resources/subscribe', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]
const config = (rules: readonly object[] = asks): object =>
  configOf({ shares: fixture('shares') }, { rules, permit: { ttl_ms: 1000 } })

const reload = async (at: TestDaemon, rules: readonly object[]): Promise<unknown> => {
  writeFileSync(at.config, JSON.stringify(config(rules)), { mode: 0o600 })
  return at.client.call('daemon/reload', {})
}

test.each<[string, (at: TestDaemon) => Promise<unknown>, object | null]>([
  ['the time of a permit goes by', () => elapsed(1100), null],
  [
    'a reload denies the first',
    (at) =>
      reload(at, [
        { permission: 'mcp:shares:resources/subscribe', action: 'deny', where: { '/uri': first } },
        ...asks,
      ]),
    { code: 'ERR_PERMIT_REFUSED', check: 'authenticity' },
  ],
  [
    'the approval of the first ends',
    async (at) => {
      const { standing } = await at.client.call('approvals/list', {})
      return at.client.call('approvals/deny', { id: standing[0]?.id ?? '' })
    },
    { code: 'ERR_APPROVAL_DENIED' },
  ],
  [
    'the permit of the first is revoked',
    async (at) => at.client.call('permits/revoke', { server: 'shares' }),
    { code: 'ERR_PERMIT_REFUSED', check: 'authenticity' },
  ],
])('while the second is asked about, %s', async (_title, act, refusal) => {
  await using at = await daemon(config())
  await using watch = await watching(at.client)
  using host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await host.ask('session/attach', { server: 'shares' })
  const says = (method: string, params: object) => host.ask(method, { ...params, _meta: speaker })
  const listening = says('subscriptions/listen', {
    notifications: { resourceSubscriptions: [first, second] },
  })
  const yes = async (uri: string): Promise<void> => {
    // A reload has it asked anew.
    await eventually(async () => {
      const id = watch.asked.findLast(({ text }) => text.includes(`"${uri}"`))?.id
      const said = id === undefined ? null : at.client.call('approvals/approve', { id, scope: 'policy' })
      return said === null ? null : said.catch(() => null)
    })
  }
  await yes(first)
  await eventually(() => watch.asked.some(({ text }) => !text.includes(`"${first}"`)))
  await act(at)
  await yes(second)
  const hears = async (): Promise<boolean> => {
    const { result } = await says('tools/call', { name: 'heard', arguments: {} })
    return JSON.stringify(result).includes(first)
  }
  if (refusal === null) await eventually(hears)
  else {
    expect((await listening).error).toMatchObject({ data: refusal })
    expect(await hears()).toBe(false)
    expect((await at.client.call('permits/list', {})).permits).toEqual([])
    const ends = [...bodiesOf(at.stateDir, 'call.denied'), ...bodiesOf(at.stateDir, 'call.outcome')]
    for (const { call, kind } of bodiesOf(at.stateDir, 'call.intent'))
      if (kind === 'method') expect(ends.filter((one) => one['call'] === call)).toHaveLength(1)
  }
})
