// A thousand calls at once: none is lost, none refused, and no process has more of them at once than it is to have.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { expectAftermath } from '../support/aftermath.ts'
import { type AttachedHost, attached } from '../support/attached.ts'
import { configOf, fixture, place, type Place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { RawCaller, refusalOf } from '../support/raw-caller.ts'
import { speaker } from '../support/speaker.ts'
import { watching } from '../support/watching.ts'
import { bodiesOf, witness, type Witness } from '../support/witness.ts'

let seen: Witness
let at: Place
let client: Client

const tallies = (name: string, more: object, era: readonly string[] = []): object =>
  fixture('tallies', {
    args: ['/app/tallies.mjs', `/seen/${name}`, ...era],
    profile: 'workspace-write',
    mounts: [seen.mount],
    ...more,
  })

beforeAll(async () => {
  seen = await witness()
  const servers = {
    usual: tallies('usual', {}),
    few: tallies('few', { max_concurrent: 10 }),
    one: tallies('one', { max_concurrent: 1, timeouts: { call_ms: 2000, initialize_ms: 60_000 } }),
    asked: tallies('asked', { max_concurrent: 1 }),
    shared: tallies('shared', { max_concurrent: 4, instance: 'shared' }, ['stateless']),
    own: tallies('own', { max_concurrent: 3, instance: 'call' }),
    lost: tallies('lost', { max_concurrent: 2, instance: 'shared' }, ['stateless']),
    changed: tallies('changed', { max_concurrent: 1 }),
    expires: tallies('expires', { max_concurrent: 1 }),
    tasks: fixture('tasks', { args: ['/app/tasks.mjs', 'legacy'], max_concurrent: 1 }),
  }
  const rules = [
    ...['asked', 'expires'].map((name) => ({
      permission: `mcp:${name}:*`,
      action: 'ask',
      where: { '/name': 'ask*' },
    })),
    { permission: 'mcp:*:*', action: 'allow' },
  ]
  at = await place(configOf(servers, { rules, approval: { ttl_ms: 1500 } }))
  ;({ client } = await serve(at))
})
afterAll(async () => {
  await client.call('daemon/shutdown', {})
  await client[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
  await seen[Symbol.asyncDispose]()
})

/** What a server wrote down: the names in the order in which their calls began, and how many were at work at once. */
function tallyOf(server: string): { readonly begun: readonly string[]; readonly most: number } {
  const path = join(seen.source, server)
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
  let [now, most] = [0, 0]
  for (const line of lines) most = Math.max(most, (now += line.startsWith('begin') ? 1 : -1))
  expect(now).toBe(lines.filter((line) => line === 'begin dies').length)
  return { begun: lines.filter((line) => line.startsWith('begin')).map((line) => line.slice(6)), most }
}

const outcomesOf = (server: string): number =>
  bodiesOf(at.stateDir, 'call.outcome').filter((one) => one['server'] === server).length

const wrote = (server: string, line: string): Promise<unknown> =>
  eventually(() => readFileSync(join(seen.source, server), 'utf8').includes(line))

const names = (count: number, of = 'n'): readonly string[] =>
  Array.from({ length: count }, (_, n) => `${of}${n}`)
const answered = (name: string): object => ({ content: [{ type: 'text', text: JSON.stringify({ name }) }] })

describe('20: a thousand calls at once', () => {
  afterEach(() => expectAftermath(at, client))

  test.each([
    ['usual', 256],
    ['few', 10],
  ])(
    'over one connection to %s are each answered, no more than %d at work at once, first come first served',
    async (server, most) => {
      await using host = await at.connect('host')
      const all = names(1000)
      const call = async (name: string): Promise<unknown> => {
        const { type, data } = (await host.call('tools/call', {
          server,
          tool: 'work',
          arguments: { name, ms: 20 },
        })) as { readonly type: string; readonly data: unknown }
        return [type, data]
      }
      const ends = await Promise.all(all.map(call))
      expect(ends).toEqual(all.map((name) => ['output', expect.objectContaining(answered(name))]))
      const tally = tallyOf(server)
      expect(tally.begun).toEqual(all)
      expect(tally.most).toBeLessThanOrEqual(most)
      expect(tally.most).toBeGreaterThan(most / 2)
      await eventually(() => outcomesOf(server) === 1000) // written behind the answer
    },
  )

  test.each([
    ['usual', 256],
    ['few', 10],
  ])(
    'in a session with %s are each answered, no more than %d at work at once, first come first served',
    async (server, most) => {
      const before = tallyOf(server).begun.length
      await using host = await attached(at, server)
      const all = names(1000, 's')
      const ends = await host.callAll(
        'work',
        all.map((name) => ({ name, ms: 20 })),
      )
      expect(ends.map(({ result }) => result)).toEqual(
        all.map((name) => expect.objectContaining(answered(name))),
      )
      const { begun, most: now } = tallyOf(server)
      expect(begun.slice(before)).toEqual(all)
      expect(now).toBeLessThanOrEqual(most)
      expect(now).toBeGreaterThan(most / 2)
    },
  )

  test('in two sessions that share a process are each answered, by turns of the two', async () => {
    const hosts = await Promise.all(
      ['a', 'b'].map(() => RawCaller.open(join(at.runtimeDir, 'host/host.sock'))),
    )
    for (const host of hosts)
      expect((await host.ask('session/attach', { server: 'shared' })).error).toBeUndefined()
    const work = (name: string): object => ({ name: 'work', arguments: { name, ms: 5 }, _meta: speaker })
    await hosts[0]?.ask('tools/call', work('first'))
    const all = ['a', 'b'].map((of) => names(500, of))
    const ends = await Promise.all(
      hosts.map((host, n) => host.askAll('tools/call', (all[n] ?? []).map(work))),
    )
    for (const host of hosts) host[Symbol.dispose]()
    expect(ends.flat().map(({ result }) => result)).toEqual(
      all.flat().map((name) => expect.objectContaining(answered(name))),
    )
    const { begun, most } = tallyOf('shared')
    expect(most).toBe(4)
    for (const [n, of] of ['a', 'b'].entries())
      expect(begun.filter((name) => name.startsWith(of))).toEqual(all[n])
    // Whoever came first had the others wait for no longer than by turns.
    const half = begun.slice(100, 600)
    expect(Math.abs(half.filter((name) => name.startsWith('a')).length - 250)).toBeLessThan(10)
  })

  test('of which each has a process: as many as may be there at once, the others when those are gone', async () => {
    await using host = await attached(at, 'own')
    const all = names(30, 'o')
    const ends = await host.callAll(
      'work',
      all.map((name) => ({ name, ms: 20 })),
    )
    expect(ends.map(({ result }) => result)).toEqual(
      all.map((name) => expect.objectContaining(answered(name))),
    )
    const { begun, most } = tallyOf('own')
    expect(begun.toSorted()).toEqual(all.toSorted())
    expect(most).toBeLessThanOrEqual(3)
  })
})

describe('a call that waits for its turn', () => {
  const work = (host: AttachedHost, name: string, ms: number) => host.call('work', { name, ms })

  test('that does not come in time is refused, on record, and nothing of it is sent', async () => {
    await using host = await attached(at, 'one')
    const [first, second, third] = await Promise.all(
      [1900, 1900, 0].map((ms, n) => work(host, `late${n}`, ms)),
    )
    expect([first, second].map((end) => end?.result)).toEqual(
      ['late0', 'late1'].map((name) => expect.objectContaining(answered(name))),
    )
    expect(refusalOf(third ?? { id: null })?.data).toMatchObject({ code: 'ERR_BUSY', retryable: true })
    expect(tallyOf('one').begun).toEqual(['late0', 'late1'])
    const denials = bodiesOf(at.stateDir, 'call.denied').filter(({ server }) => server === 'one')
    expect(denials).toEqual([expect.objectContaining({ code: 'ERR_BUSY' })])
    expect((await work(host, 'late3', 0)).result).toMatchObject(answered('late3'))
  })

  test('and is taken back is never sent', async () => {
    const before = tallyOf('one').begun.length
    await using host = await attached(at, 'one')
    const ends = host.callAll('work', [
      { name: 'kept', ms: 300 },
      { name: 'back', ms: 0 },
      { name: 'next', ms: 0 },
    ])
    await wrote('one', 'begin kept')
    host.tell('notifications/cancelled', { requestId: 4 })
    void ends.catch(() => undefined) // one has no answer
    await wrote('one', 'end next')
    expect(tallyOf('one').begun.slice(before)).toEqual(['kept', 'next'])
    const denials = bodiesOf(at.stateDir, 'call.denied').filter(({ server }) => server === 'one')
    expect(denials.at(-1)).toMatchObject({ code: 'ERR_CALL_CANCELLED' })
  })

  test('over a connection that is closed is never sent, and holds up no other', async () => {
    const before = tallyOf('one').begun.length
    const call = (host: Client, name: string, ms: number): Promise<unknown> =>
      host.call('tools/call', { server: 'one', tool: 'work', arguments: { name, ms } })
    await using other = await at.connect('host')
    const holds = call(other, 'holds', 500)
    await wrote('one', 'begin holds')
    const leaving = await at.connect('host')
    const left = call(leaving, 'left', 0).catch((error: unknown) => error)
    await client.call('servers/get', { server: 'one' })
    const next = call(other, 'follows', 0)
    await leaving[Symbol.asyncDispose]()
    await Promise.all([left, holds, next])
    expect(tallyOf('one').begun.slice(before)).toEqual(['holds', 'follows'])
  })

  test('waits for no person who is asked about another', async () => {
    await using host = await attached(at, 'asked')
    await using operator = await watching(client)
    const asked = work(host, 'ask0', 0)
    const question = await operator.next()
    expect((await work(host, 'free', 0)).result).toMatchObject(answered('free'))
    const busy = work(host, 'busy', 300)
    await wrote('asked', 'begin busy')
    await client.call('approvals/approve', { id: question.id })
    expect((await asked).result).toMatchObject(answered('ask0'))
    await busy
    expect(tallyOf('asked')).toEqual({ begun: ['free', 'busy', 'ask0'], most: 1 })
  })

  test('has another, or none, at once where the server’s process is lost: it is told so, and nothing is left waiting', async () => {
    using host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
    expect((await host.ask('session/attach', { server: 'lost' })).error).toBeUndefined()
    const params = (name: string, ms: number): object => ({
      name: 'work',
      arguments: { name, ms },
      _meta: speaker,
    })
    await host.ask('tools/call', params('first', 0))
    const waiting = names(5).map((name) => params(name, 60_000))
    const ends = await host.askAll('tools/call', [params('dies', 100), ...waiting])
    for (const { error } of ends)
      expect(error).toMatchObject({
        message: expect.stringContaining('exited with status 3') as string,
        data: { code: 'ERR_SERVER_UNAVAILABLE' },
      })
  })

  test('as thousands do is refused, as all of them are, where its tool has changed by then', async () => {
    await using host = await attached(at, 'changed')
    await host.call('work', { name: 'first', ms: 0 })
    const [kept, ...others] = await host.callAll('work', [
      { name: 'changes', ms: 1500 },
      ...names(3000).map((name) => ({ name, ms: 0 })),
    ])
    expect(kept?.result).toMatchObject(answered('changes'))
    // What changed may be known only behind the one that has its turn first.
    const codes = others.map(({ error }) => error?.data.code)
    expect(new Set(codes.slice(1))).toEqual(new Set(['ERR_DECLARATION_MISMATCH']))
    expect(['ERR_PERMIT_REFUSED', 'ERR_DECLARATION_MISMATCH']).toContain(codes[0])
    await eventually(() => outcomesOf('changed') === 2) // written behind the answer
    expect(tallyOf('changed').begun).toEqual(['first', 'changes'])
  })

  test('and goes by an approval that has expired by then is asked about anew', async () => {
    await using host = await attached(at, 'expires')
    await using operator = await watching(client, ({ id }) =>
      client.call('approvals/approve', { id, scope: 'session' }),
    )
    expect((await work(host, 'ask0', 0)).result).toMatchObject(answered('ask0'))
    const busy = work(host, 'busy', 2500)
    await wrote('expires', 'begin busy')
    const again = work(host, 'ask0', 0)
    await busy
    expect((await again).result).toMatchObject(answered('ask0'))
    expect(operator.asked).toHaveLength(2)
  })

  test('hears at once of a yes that is taken back, of which nothing is recorded as used', async () => {
    await using host = await attached(at, 'asked')
    await using operator = await watching(client)
    const busy = work(host, 'holds', 3000)
    await wrote('asked', 'begin holds')
    const asked = host.ask('tools/call', {
      name: 'work',
      arguments: { name: 'ask1', ms: 0 },
      _meta: { progressToken: 'token' },
    })
    const { id } = await operator.next()
    await client.call('approvals/approve', { id })
    const heard = (): readonly string[] => host.lines.filter((line) => line.includes('progressToken'))
    const before = heard().length
    await client.call('approvals/deny', { id, reason: 'on second thoughts' })
    expect(refusalOf(await asked)).toMatchObject({
      message: expect.stringContaining('on second thoughts') as string,
      data: { code: 'ERR_APPROVAL_DENIED' },
    })
    expect(heard().slice(before).join('')).not.toContain('approval')
    expect(
      bodiesOf(at.stateDir, 'approval.used').filter((one) => one['granted'] === true),
    ).not.toContainEqual(expect.objectContaining({ approval: id }))
    expect((await busy).result).toMatchObject(answered('holds'))
    expect(tallyOf('asked').begun).not.toContain('ask1')
  })

  test('waits for no task that another has begun', async () => {
    await using host = await attached(at, 'tasks')
    const begun = await host.ask('tools/call', { name: 'work', arguments: {}, task: { ttl: 600_000 } })
    expect(begun.result).toMatchObject({ task: { status: 'working' } })
    expect((await host.call('plain')).error).toBeUndefined()
  })

  test('no longer than its caller says', async () => {
    await using host = await at.connect('host')
    const call = (name: string, ms: number, more: object = {}): Promise<unknown> =>
      host.call('tools/call', { server: 'one', tool: 'work', arguments: { name, ms }, ...more })
    const busy = call('long', 1500)
    await wrote('one', 'begin long')
    await expect(call('short', 0, { timeout_ms: 100 })).rejects.toMatchObject({
      code: 'ERR_BUSY',
      message: expect.stringContaining('did not come within 100 ms,') as string,
    })
    await busy
  })

  test('comes in turn with those over other connections of the same uid', async () => {
    const before = tallyOf('few').begun.length
    const call = (host: Client, name: string): Promise<unknown> =>
      host.call('tools/call', { server: 'few', tool: 'work', arguments: { name, ms: 20 } })
    await using many = await at.connect('host')
    await using one = await at.connect('host')
    const all = names(300, 'many').map((name) => call(many, name))
    await wrote('few', 'begin many0')
    await call(one, 'between')
    await Promise.all(all)
    expect(tallyOf('few').begun.indexOf('between') - before).toBeLessThan(200)
  })

  test('goes by no yes that ended meanwhile with what it stood on: it is told so at once, and nothing is sent', async () => {
    await using host = await attached(at, 'asked')
    await using operator = await watching(client)
    const busy = work(host, 'reset', 3000)
    await wrote('asked', 'begin reset')
    const asked = work(host, 'ask2', 0)
    const { id } = await operator.next()
    await client.call('approvals/approve', { id })
    const used = bodiesOf(at.stateDir, 'approval.used').length
    await client.call('trust/reset', { server: 'asked', tool: 'work', reason: 'not any more' })
    expect(refusalOf(await asked)).toMatchObject({
      message: expect.stringContaining('not any more') as string,
      data: { code: 'ERR_APPROVAL_DENIED' },
    })
    expect(bodiesOf(at.stateDir, 'approval.used').slice(used)).toMatchObject([{ granted: false }])
    expect((await busy).result).toMatchObject(answered('reset'))
    expect(tallyOf('asked').begun).not.toContain('ask2')
  })
})
