// What a person told a server that asked is in nothing that a daemon keeps, however the server repeats it; all else is.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { askable, askableMeta } from '../support/attach.ts'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { hearing } from '../support/following.ts'
import { RawCaller, type RawReply } from '../support/raw-caller.ts'
import { bodiesOf } from '../support/witness.ts'

const name = 'Ann "the Ox" Überall'
const content = {
  name,
  number: 48151623,
  plan: 'the-second-plan',
  typed: 'CONFIRM-DELETION',
  sure: true,
}
const forms = [
  name,
  JSON.stringify(name).slice(1, -1),
  encodeURIComponent(name),
  Buffer.from(name).toString('base64'),
  Buffer.from(name).toString('hex'),
  '48151623',
  'Überall',
]

/** Everything that outlives the answers to hosts: journal, sidecars, logs, events. */
async function kept(at: TestDaemon, events: readonly unknown[]): Promise<string> {
  const journal = join(at.stateDir, 'journal')
  const files = readdirSync(journal, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
  const logs = await at.client.call('servers/logs', { server: 'repeats', lines: 1000 })
  return [...files, JSON.stringify(events), logs.lines.join('\n')].join('\n')
}

/** Asks, answers the question as a host of that era does, and has the answers repeated. */
async function talk(session: RawCaller, era: string): Promise<readonly RawReply[]> {
  const again = (more: object = {}): Promise<RawReply> =>
    session.ask('tools/call', { name: 'again', arguments: more, _meta: askableMeta })
  const said = { action: 'accept', content }
  let last: RawReply
  if (era === 'modern') {
    const ask = { name: 'ask', arguments: {}, _meta: askableMeta }
    const { result } = await session.ask('tools/call', ask)
    expect(result?.['resultType']).toBe('input_required')
    last = await session.ask('tools/call', { ...ask, inputResponses: { who: said }, requestState: 'state' })
  } else {
    await session.ask('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: askable,
      clientInfo: { name: 'h', version: '1' },
    })
    session.tell('notifications/initialized')
    const asked = session.ask('tools/call', { name: 'ask', arguments: {} })
    const question = await eventually(() => session.lines.find((line) => line.includes('elicitation/create')))
    const { id } = JSON.parse(question) as { id: string }
    session.answer(id, said)
    last = await asked
  }
  return [last, await again(), await again({ fails: true }), await again({ filler: 400_000 })]
}

test.each(['legacy', 'modern'])(
  'in the %s era a server repeats what it was told, and only its host reads it',
  async (era) => {
    const entry = fixture('repeats-person', {
      args: ['/app/repeats-person.mjs', era],
      elicitation: { enabled: true },
    })
    await using at = await daemon(configOf({ repeats: entry }))
    await using told = await hearing(at.client)
    using session = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
    await session.ask('session/attach', { server: 'repeats' })
    const [first, again, failed] = await talk(session, era)

    // The host has every byte of it.
    for (const reply of [first, again])
      expect(reply?.result?.['structuredContent']).toMatchObject({ ...content, [name]: expect.any(String) })
    expect(failed?.error?.message).toContain(name)

    await at.client.call('audit/query', { limit: 1 })
    await eventually(() => JSON.stringify(told.events).includes('notifications/[redacted:an answer]'))
    const outcomes = bodiesOf(at.stateDir, 'call.outcome')
    expect(outcomes).toHaveLength(era === 'modern' ? 5 : 4)
    const written = await kept(at, told.events)
    for (const form of forms) expect(written).not.toContain(form)

    // What the server offered, or had a person copy, is no secret of the person's; nor is anything beside the answers.
    const evidence = outcomes.at(era === 'modern' ? 1 : 0)?.['response'] as string
    expect(JSON.parse(evidence)).toMatchObject({
      structuredContent: {
        name: '[redacted:an answer]',
        number: '[redacted:an answer]',
        plan: 'the-second-plan',
        typed: 'CONFIRM-DELETION',
        sure: true,
      },
    })
    const logs = await at.client.call('servers/logs', { server: 'repeats', lines: 1000 })
    expect(logs.lines[0]).toBe(
      'it was [redacted:an answer], or [redacted:an answer], with [redacted:an answer]',
    )
    expect((await at.client.call('audit/verify', {})).ok).toBe(true)
  },
)

test('what one person told is looked for in nobody else’s record, nor in another server’s', async () => {
  const more = { args: ['/app/repeats-person.mjs', 'modern'], elicitation: { enabled: true } }
  await using at = await daemon(configOf({ repeats: fixture('repeats-person', more), echo: fixture('echo') }))
  const path = join(at.runtimeDir, 'host/host.sock')
  using session = await RawCaller.open(path)
  await session.ask('session/attach', { server: 'repeats' })
  await talk(session, 'modern')
  await at.client.call('tools/call', { server: 'echo', tool: 'echo', arguments: { text: name } })
  await at.client.call('audit/query', { limit: 1 })
  const echoed = bodiesOf(at.stateDir, 'call.outcome').filter(({ server }) => server === 'echo')
  expect(echoed.at(-1)?.['response']).toContain('Überall')
})

test('a server that may ask nobody is told a no, whatever a host says', async () => {
  const more = { args: ['/app/repeats-person.mjs', 'modern'] }
  await using at = await daemon(configOf({ repeats: fixture('repeats-person', more) }))
  using session = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await session.ask('session/attach', { server: 'repeats' })
  const inputResponses = { who: { action: 'accept', content } }
  await session.ask('tools/call', { name: 'ask', arguments: {}, _meta: askableMeta, inputResponses })
  await session.ask('tools/call', { name: 'again', arguments: {}, _meta: askableMeta })
  await at.client.call('audit/query', { limit: 1 })
  const outcomes = bodiesOf(at.stateDir, 'call.outcome').map(({ response }) => String(response))
  expect(outcomes).toHaveLength(2)
  for (const response of outcomes) expect(response).toContain('decline')
  expect(`${outcomes.join('')}${session.lines.join('')}`).not.toContain('48151623')
})
