// A tool earns trust by what its declaration says of its results, and by nothing else.
import { expect, test } from 'vitest'
import { attached } from '../support/attached.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'

const fits = { total: 1 }

test.each<[string, string, object | null, number]>([
  ['is what was declared', 'sum', fits, 1],
  ['has no structured content', 'sum', null, 0],
  ['lacks a member', 'sum', {}, 0],
  ['has one of another type', 'sum', { total: 'many' }, 0],
  ['has one too many', 'sum', { ...fits, also: 1 }, 0],
  ['is of a tool that declares nothing of it', 'plain', null, 1],
])('a result that %s is evidence or is none, by either way', async (_what, tool, as, evidence) => {
  await using at = await daemon(configOf({ structured: fixture('structured') }))
  const given = as === null ? {} : { as }
  const earned = async (): Promise<number> => {
    const { trust } = await at.client.call('trust/list', { server: 'structured' })
    return trust.find((one) => one.tool === tool)?.evidence ?? 0
  }
  const answer = await at.client.call('tools/call', { server: 'structured', tool, arguments: given })
  expect(answer).toMatchObject({ type: 'output' })
  expect(await earned()).toBe(evidence)
  await using host = await attached(at, 'structured')
  expect(await host.call(tool, given)).toMatchObject({ result: as === null ? {} : { structuredContent: as } })
  expect(await earned()).toBe(2 * evidence)
  const { records } = await at.client.call('audit/query', { limit: 100 })
  const outcomes = records.filter(({ type }) => type === 'call.outcome').map(({ body }) => body)
  expect(outcomes).toHaveLength(2)
  for (const outcome of outcomes)
    expect(outcome).toMatchObject(evidence === 1 ? { outcome: 'result' } : { off_schema: expect.any(String) })
})
