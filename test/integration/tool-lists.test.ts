// What a host sees of servers with many, changing or hostile tools: over the control socket and in attached sessions.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import type { ToolView } from '../../src/rpc/governed.ts'
import { configOf, daemon, endServe, fixture, place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { attached } from '../support/attached.ts'
import { refusalOf } from '../support/raw-caller.ts'

const many = (count: number, more: object = {}): object =>
  fixture('many-tools', { args: ['/app/many-tools.mjs', String(count)], surface: 'dynamic', ...more })

const echoTool = {
  version: '7',
  parameters: { type: 'object', properties: { text: { type: 'string' } } },
  side_effects: ['read'],
  resource_scopes: [],
  credentials: [],
  output: null,
  idempotency: 'idempotent',
  failure_modes: [],
}

const notATool = /^ERR_(TOOL_NOT_FOUND|DECLARATION_MISSING)$/

let at: TestDaemon
let host: Client
beforeAll(async () => {
  at = await daemon(
    configOf({
      ten: many(20),
      more: many(21),
      most: many(130),
      hostile: fixture('hostile-schemas'),
      shaken: many(3),
    }),
  )
  host = await at.connect('host')
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
})

const namesOf = (tools: readonly ToolView[]): readonly string[] => tools.map(({ name }) => name)
const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

describe('lists of many tools', () => {
  test('20 are listed; from 21 on the search stands for them, finds 10, and lists what it found', async () => {
    await host.call('servers/start', { server: 'ten' })
    const few = await host.call('tools/list', {})
    expect(few).toMatchObject({ tools: { length: 20 }, deferred: 0 })
    for (const { description } of few.tools) expect(description.length).toBeLessThanOrEqual(200)
    await host.call('servers/stop', { server: 'ten' })
    await host.call('servers/start', { server: 'more' })
    expect(await host.call('tools/list', {})).toMatchObject({
      tools: [{ name: 'sallyport_search' }],
      deferred: 21,
    })
    expect((await host.call('tools/list', { server: 'more' })).tools).toHaveLength(21)
    expect((await host.call('tools/list', { all: true })).tools).toHaveLength(21)
    const found = await host.call('tools/search', { query: 'read a gauge', limit: 100 })
    expect(found).toMatchObject({ tools: { length: 10 }, searched: 21 })
    for (const { description } of found.tools) {
      expect(description.length).toBeGreaterThan(200)
      expect(description.length).toBeLessThanOrEqual(2048)
    }
    const listed = await host.call('tools/list', {})
    expect(listed.deferred).toBe(11)
    expect(namesOf(listed.tools).toSorted()).toEqual(['sallyport_search', ...namesOf(found.tools)].toSorted())
    expect((await host.call('tools/search', { query: 'gauge', limit: 2 })).tools).toHaveLength(2)
    await host.call('servers/stop', { server: 'more' })
  })

  test('what searches have found is listed up to 100 tools, those that were found last', async () => {
    for (const server of ['more', 'most']) await host.call('servers/start', { server })
    const { tools: all } = await host.call('tools/list', { all: true })
    const found: string[] = []
    for (const { server, tool } of all)
      found.push(...namesOf((await host.call('tools/search', { query: tool, server, limit: 1 })).tools))
    const last = [...new Set(found.toReversed())].slice(0, 100)
    expect([new Set(found).size, last.length]).toEqual([121, 100])
    const listed = await host.call('tools/list', {})
    expect(listed.deferred).toBe(21)
    expect(namesOf(listed.tools).toSorted()).toEqual(['sallyport_search', ...last].toSorted())
    for (const server of ['more', 'most']) await host.call('servers/stop', { server })
  })

  test('one tool is described in 2048 characters, a result has the words of its declaration', async () => {
    await host.call('servers/start', { server: 'ten' })
    const detail = await host.call('tools/describe', { server: 'ten', tool: 'gauge_7' })
    expect(detail.description).toHaveLength(2048)
    expect(detail).toMatchObject({ identity: 'ten/gauge_7@0#1', tier: 'untrusted', halted: null })
    await expect(host.call('tools/describe', { server: 'ten', tool: 'gauge_8000' })).rejects.toMatchObject({
      code: 'ERR_TOOL_NOT_FOUND',
      exitStatus: 8,
    })
    await host.call('servers/stop', { server: 'ten' })
  })

  test('of a server’s tools 100 count, and no other can be called, on the socket or in a session', async () => {
    await host.call('servers/start', { server: 'most' })
    const { tools } = await host.call('tools/list', { server: 'most' })
    expect(tools).toHaveLength(100)
    expect((await host.call('tools/call', { server: 'most', tool: 'gauge_99', arguments: {} })).type).toBe(
      'output',
    )
    await expect(host.call('tools/call', { server: 'most', tool: 'gauge_100' })).rejects.toMatchObject({
      code: expect.stringMatching(notATool),
    })
    await using session = await attached(at, 'most')
    const listed = await session.ask('tools/list', {})
    expect((listed.result as { tools: unknown[] }).tools).toHaveLength(100)
    expect((await session.call('gauge_99')).error).toBeUndefined()
    expect((await session.call('gauge_100')).error?.data.code).toMatch(notATool)
    await host.call('servers/stop', { server: 'most' })
  })

  test('a list that was seen before a restart is not the one that the caller saw', async () => {
    await using again = await place(configOf({ ten: many(3) }))
    const called = async (generation: number | null) => {
      const running = await serve(again)
      try {
        await running.client.call('servers/start', { server: 'ten' })
        const seen = await running.client.call('tools/list', {})
        const [tool = ''] = seen.tools.map((one) => one.tool)
        const params = { server: 'ten', tool, arguments: {}, generation: generation ?? seen.generation }
        const code = await running.client.call('tools/call', params).then(
          () => 'called',
          (error: { code: string }) => error.code,
        )
        return { code, generation: seen.generation }
      } finally {
        await endServe(running)
      }
    }
    const first = await called(null)
    expect(first.code).toBe('called')
    expect(await called(first.generation)).toMatchObject({ code: 'ERR_TOOL_NOT_FOUND' })
  })

  test('a list that changes again and again is asked for once in 5 s, and gets one generation', async () => {
    const asked = async (): Promise<number> => {
      const { data } = await host.call('tools/call', { server: 'shaken', tool: 'asked', arguments: {} })
      return (data as { structuredContent: { asked: number } }).structuredContent.asked
    }
    const before = await asked()
    const { generation } = await host.call('tools/list', { server: 'shaken' })
    const shaken = host.call('tools/call', { server: 'shaken', tool: 'shake', arguments: { times: 50 } })
    await shaken
    // A list asks nothing: what was listed last stands until the limit lets another look through.
    expect(namesOf((await host.call('tools/list', { server: 'shaken' })).tools)).not.toContain(
      'shaken_fickle',
    )
    await eventually(async () =>
      namesOf((await host.call('tools/list', { server: 'shaken' })).tools).includes('shaken_fickle'),
    )
    expect((await host.call('tools/list', { server: 'shaken' })).generation).toBe(generation + 1)
    expect(await asked()).toBe(before + 1)
    await host.call('servers/stop', { server: 'shaken' })
  })

  test('in a session, too: fifty changes are one question, and every one of them reaches the host', async () => {
    await using session = await attached(at, 'shaken')
    const asked = async (): Promise<number> =>
      ((await session.call('asked')).result as { structuredContent: { asked: number } }).structuredContent
        .asked
    const before = await asked()
    await session.call('shake', { times: 50 })
    await eventually(
      () => session.lines.filter((line) => line.includes('notifications/tools/list_changed')).length === 50,
    )
    // The call that comes now needs to know what is listed: that is the one question.
    expect(await asked()).toBe(before + 1)
  })
})

test('a tool whose name is dots is accepted, called, held and explained as any other', async () => {
  const names = ['.', '..']
  const entry = fixture('collides', { args: ['/app/collides.mjs', ...names], acceptance: 'manual' })
  await using dots = await daemon(configOf({ dots: entry }))
  const { accepted } = await dots.client.call('declarations/accept', { server: 'dots', tools: names })
  expect(accepted.toSorted()).toEqual(names)
  await using session = await attached(dots, 'dots')
  for (const tool of names) {
    const { metadata } = await dots.client.call('tools/call', { server: 'dots', tool })
    expect(metadata.identity).toBe(`dots/${tool}@0#1`)
    expect((await session.call(tool)).error).toBeUndefined()
    expect(await dots.client.call('tools/describe', { server: 'dots', tool })).toMatchObject({ tool })
    expect(await dots.client.call('policy/explain', { server: 'dots', tool })).toMatchObject({
      outcome: 'sent',
    })
    const { name } = await dots.client.call('servers/hold', { server: 'dots', tool })
    expect((await session.call(tool)).error?.data.code).toBe('ERR_PERMIT_REFUSED')
    await dots.client.call('servers/release', { name })
    expect(await dots.client.call('trust/reset', { server: 'dots', tool })).toMatchObject({
      reset: [{ tool }],
    })
  }
})

describe('hostile schemas in an attached session', () => {
  const as = 'a'.repeat(60)

  test('make no tool, or refuse with a reason, and stall nobody', async () => {
    await using session = await attached(at, 'hostile')
    const listed = await session.ask('tools/list', {})
    const names = (listed.result as { tools: { name: string }[] }).tools.map(({ name }) => name)
    expect(names).not.toContain('deep')
    expect(names).not.toContain('long')
    await using other = await attached(at, 'ten')
    for (const [tool, args, reason] of [
      ['redos', { text: `${as}!` }, 'took more than 500 ms of processor time'],
      ['url', {}, 'got "http://127.0.0.1:1/schema.json", expected a part of the schema itself'],
      ['file', {}, 'got "file:///etc/passwd", expected a part of the schema itself'],
      ['loop', {}, 'cannot be used'],
      ['exponential', { text: 'x' }, 'judging them'],
    ] as const) {
      const made = session.call(tool, args)
      const beside = await other.call('asked')
      expect(beside.error, tool).toBeUndefined()
      expect(refusalOf(await made), tool).toMatchObject({
        message: expect.stringContaining(reason),
        data: { code: 'ERR_ARGUMENTS_INVALID' },
      })
    }
    for (const tool of ['deep', 'long'])
      expect((await session.call(tool)).error?.data.code, tool).toMatch(notATool)
    expect((await session.call('honest', { text: 'abc' })).error).toBeUndefined()
    expect(refusalOf(await session.call('honest', { text: 'ABC' }))?.data.code).toBe('ERR_ARGUMENTS_INVALID')
    // Who asks for a task is answered with one, or with an error.
    const asked = { name: 'honest', arguments: { text: 'ABC' }, task: { ttl: 1000 } }
    const { error } = await session.ask('tools/call', asked)
    expect(error?.data.code).toBe('ERR_ARGUMENTS_INVALID')
  })

  test('are shown ten levels deep and no deeper', async () => {
    await host.call('servers/start', { server: 'hostile' })
    const { tools } = await host.call('tools/list', { server: 'hostile', all: true })
    const depths = new Map(tools.map(({ tool, input_schema: schema }) => [tool, depthOf(schema)]))
    // The empty object that stands for the rest is the eleventh.
    expect(Math.max(...depths.values())).toBe(11)
    expect(depths.get('nested')).toBe(11)
    expect(depths.get('redos')).toBe(3)
  })
})

describe('a declaration that stands in a server’s entry', () => {
  const declaredAs = (tool: object, more: object = {}): object => ({
    version: 1,
    server: 'echo',
    tools: { echo: { ...echoTool, ...tool } },
    ...more,
  })

  test('is what is accepted, tool by tool, and what arguments are held against', async () => {
    const file = join(at.folder, 'echo.json')
    writeFileSync(file, JSON.stringify(declaredAs({})), { mode: 0o600 })
    const entry = fixture('rug-pull', { acceptance: 'manual', surface: 'dynamic', declaration: file })
    await using other = await daemon(configOf({ echo: entry }))
    const call = (tool: string, args: Record<string, unknown>) =>
      other.client.call('tools/call', { server: 'echo', tool, arguments: args })
    await expect(call('echo', { text: 'abc' })).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISSING' })
    await other.client.call('declarations/accept', { server: 'echo' })
    expect((await call('echo', { text: 'abc' })).type).toBe('output')
    await expect(call('echo', { text: 7 })).rejects.toMatchObject({ code: 'ERR_ARGUMENTS_INVALID' })
    await expect(call('add', {})).rejects.toMatchObject({ code: 'ERR_DECLARATION_MISSING' })
    expect(await other.client.call('tools/describe', { server: 'echo', tool: 'echo' })).toMatchObject({
      declaration: { version: '7', idempotency: 'idempotent' },
    })
  })

  test('is accepted once, though the server lists what is not in it', async () => {
    const file = join(at.folder, 'some.json')
    writeFileSync(file, JSON.stringify(declaredAs({})), { mode: 0o600 })
    const entry = fixture('rug-pull', { acceptance: 'first-use', surface: 'dynamic', declaration: file })
    await using other = await daemon(configOf({ echo: entry }))
    for (let n = 0; n < 3; n++) {
      await other.client.call('tools/call', { server: 'echo', tool: 'echo', arguments: { text: 'a' } })
      await other.client.call('servers/stop', { server: 'echo' }) // and looked at again
    }
    const accepted = await other.client.call('audit/query', { type: 'surface.accepted', limit: 1000 })
    expect(accepted.records).toHaveLength(1)
  })

  test.each([
    ['another server', declaredAs({}, { server: 'other' }), /server: got "other", expected echo/],
    ['a field too few', { ...declaredAs({}), tools: { echo: {} } }, /tools.echo.version: got nothing/],
    [
      'what the sandbox does not grant',
      declaredAs({ side_effects: ['network'] }),
      /side_effects[^ ]*: got network/,
    ],
  ])('of %s is refused with file and place, and no daemon starts', async (_what, declaration, reason) => {
    const file = join(at.folder, 'bad.json')
    writeFileSync(file, JSON.stringify(declaration), { mode: 0o600 })
    const config = join(at.folder, 'bad.yaml')
    const entry = fixture('echo', { declaration: file })
    writeFileSync(config, JSON.stringify(configOf({ echo: entry })), { mode: 0o600 })
    const ran = await at.run([
      'serve',
      '--config',
      config,
      '--runtime',
      join(at.folder, 'r2'),
      '--state',
      join(at.folder, 's2'),
    ])
    expect(ran.status).toBe(7)
    expect(ran.stderr).toMatch(reason)
    expect(ran.stderr).toContain('bad.json')
  })
})

test('what is listed beyond what anybody could look at is told when the rest is accepted, and by a test', async () => {
  const many = fixture('many', { args: ['/app/many-tools.mjs', '250'], acceptance: 'manual' })
  await using at = await daemon(configOf({ many }, { tools: { per_server: 1000 } }))
  const { accepted, left_out: leftOut } = JSON.parse(
    (await at.run(['accept', 'many', '--json'])).stdout,
  ) as Record<'accepted' | 'left_out', readonly string[]>
  expect(accepted.length).toBeGreaterThan(100)
  expect(leftOut.length).toBeGreaterThan(10)
  expect(accepted.length + leftOut.length).toBe(250)
  const { status, stdout } = await at.run(['test', 'many'])
  expect(status).toBe(0)
  expect(stdout).toContain('as accepted')
  expect(stdout).toContain(`not callable, since nobody can tell what they are`)
  expect(stdout).toContain(`and ${leftOut.length - 5} more`)
})

test('a test says that no more tools than tools.per_server are looked at', async () => {
  const many = fixture('many', { args: ['/app/many-tools.mjs', '30'] })
  await using at = await daemon(configOf({ many }, { tools: { per_server: 20 } }))
  await at.run(['accept', 'many'])
  expect((await at.run(['test', 'many'])).stdout).toContain('of no more than 20 tools (tools.per_server)')
})
