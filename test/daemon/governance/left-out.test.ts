// What a server lists as nobody can look at it: known from when it was accepted, or news as any other tool is.
import { expect, test } from 'vitest'
import { unreadNews } from '../../../src/daemon/governance/left-out.ts'
import { newInstanceId } from '../../../src/lib/ids.ts'
import type { ServerSettings } from '../../../src/schema/settings.ts'
import type { Happening } from '../../../src/supervisor/ports.ts'
import { governed } from '../../support/governance.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { tempDir } from '../../support/temp-dir.ts'

interface Listed {
  readonly name: string
  readonly Name?: string
  readonly inputSchema: object
}

const inputSchema = { type: 'object' }
const echo: Listed = { name: 'echo', inputSchema }
const spelt: Listed = { name: 'spelt', Name: 'echo', inputSchema }
const added: Listed = { name: 'added', Name: 'echo', inputSchema }
const operator = {
  by: '0',
  peer: { uid: 1000, gid: 1000, pid: 1 },
  declared: null,
  declaredVersion: null,
  only: ['echo'],
}

/** One life of a daemon with one server, which lists what it is told to. */
async function life(state: string, more: Partial<ServerSettings>) {
  const server = serverSettings('echo.mjs', { name: 's', acceptance: 'first-use', ...more })
  const events: Happening[] = []
  const emit = (event: Happening): void => void events.push(event)
  const all = await governed({ servers: [server], rules: [], emit, state })
  const seen = (tools: readonly Listed[]) => ({
    server,
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    saidVersion: null,
    rest: {},
  })
  return {
    lists: (...tools: readonly Listed[]) =>
      all.policy.governor.observe({ ...seen(tools), instance: newInstanceId() }),
    accept: (...tools: readonly Listed[]) => all.governance.surfaces.accept(seen(tools), operator),
    leftOut: () => all.governance.ledger.accepted('s')?.leftOut,
    room: () => JSON.stringify(all.governance.ledger.save()).length,
    quarantine: () => all.governance.ledger.quarantine('s'),
    unaccepted: () => events.filter(({ type }) => type === 'surface/unaccepted').map(({ detail }) => detail),
    [Symbol.asyncDispose]: () => all[Symbol.asyncDispose](),
  }
}

test.each(['first-use', 'manual'] as const)(
  'on a static surface, what was there when it was accepted (%s) is no news, in this life or the next, and what comes is',
  async (acceptance) => {
    await using state = await tempDir()
    {
      await using one = await life(state.path, { acceptance })
      if (acceptance === 'manual') await one.accept(echo, spelt)
      await one.lists(echo, spelt)
      await one.lists(echo, spelt)
      expect(one.quarantine()).toBe(null)
      expect(one.leftOut()).toEqual(['spelt'])
    }
    await using next = await life(state.path, { acceptance })
    await next.lists(echo, spelt)
    expect(next.quarantine()).toBe(null)
    await next.lists(echo, spelt, added)
    expect(next.quarantine()).toMatchObject({
      failure: 'MP-FH-005',
      reason: expect.stringMatching(/^it lists added, which nobody declared/) as string,
    })
  },
)

test('what an operator accepts a part of has in it what nobody can look at, left out', async () => {
  await using state = await tempDir()
  await using one = await life(state.path, {})
  await one.lists(echo)
  await one.accept(echo, spelt)
  await one.lists(echo, spelt)
  expect(one.quarantine()).toBe(null)
})

test.each(['first-use', 'manual'] as const)(
  'on a dynamic surface (%s) it is told with the reason, once for each look, and is accepted once it can be read',
  async (acceptance) => {
    await using state = await tempDir()
    await using one = await life(state.path, { acceptance, surface: 'dynamic' })
    if (acceptance === 'manual') await one.accept(echo)
    const told = { tools: ['added'], reason: expect.stringContaining('nobody can tell what they are') }
    await one.lists(echo, added)
    expect(one.unaccepted()).toMatchObject([told])
    await one.lists(echo, added)
    expect(one.unaccepted()).toMatchObject([told, told])
    expect(one.quarantine()).toBe(null)
    await one.lists(echo, { name: 'added', inputSchema })
    const isTold = acceptance === 'manual'
    expect(one.unaccepted()).toHaveLength(isTold ? 3 : 2)
  },
)

test('a surface that is static from now on is not halted for what it listed when it was dynamic', async () => {
  await using state = await tempDir()
  {
    await using one = await life(state.path, { surface: 'dynamic' })
    await one.lists(echo, spelt)
  }
  await using next = await life(state.path, {})
  await next.lists(echo, spelt)
  expect(next.quarantine()).toBe(null)
  await next.lists(echo, spelt, added)
  expect(next.quarantine()).toMatchObject({ failure: 'MP-FH-005' })
})

test('nothing is news beside an acceptance that does not say what nobody could look at', () => {
  const accepted = { tools: new Map(), leftOut: [], unread: null } as never
  const seen = (surface: string): never =>
    ({ server: { surface }, unreadable: new Map([['spelt', 'why']]) }) as never
  expect(unreadNews(seen('static'), accepted)).toEqual([])
  expect(unreadNews(seen('dynamic'), accepted)).toEqual(['spelt'])
})

test.each(['static', 'dynamic'] as const)(
  'many names in one entry hold nobody up, and take no room (%s)',
  async (surface) => {
    await using state = await tempDir()
    await using one = await life(state.path, { surface })
    const many = Array.from({ length: 50_000 }, (_, n) => ({ ...spelt, name: `n${n}` }))
    const began = process.cpuUsage()
    for (let look = 0; look < 2; look += 1) await one.lists(echo, ...many)
    const { user, system } = process.cpuUsage(began)
    expect((user + system) / 1000).toBeLessThan(3000)
    expect(one.room()).toBeLessThan(200_000)
  },
)
