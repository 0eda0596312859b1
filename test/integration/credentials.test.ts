// A server that calls an API with a token from its environment, unchanged, and never has the token.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { SallyportError } from '../../src/errors.ts'
import { type Api, openApi } from '../support/api.ts'
import { endServe, fixture, type Place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { handled } from '../support/handled.ts'
import { poolOf, waits } from '../support/pool.ts'
import { callThrough, reachesOut, reachingPlace, recordsAbout, recordsOf } from '../support/reaching-out.ts'

const token = 'real-0123456789-token-abcdefghij'
const other = 'other-9876543210-token-zyxwvutsrq'

let api: Api
let at: Place
let client: Client
let child: TestDaemon['process']

const allowed = (it: Api) => [
  { host: it.host, port: it.port, address: it.address, private: true, reason: 'the API' },
  { host: it.host, port: it.plainPort, address: it.address, private: true, reason: 'the same, in the clear' },
]
const egressFor = (it: Api) => allowed(it).map((entry) => ({ ...entry, tls: entry.port === it.port }))
const swap = (it: Api, more: object = {}) => ({
  use: 'api',
  inject: 'egress',
  as: 'API_TOKEN',
  hosts: [`${it.host}:${it.port}`],
  ca_file: it.caFile,
  ...more,
})

/** A place whose profile `open` may reach the API and have secrets in every way. */
async function placeFor(it: Api, servers: (it: Api) => Readonly<Record<string, object>>): Promise<Place> {
  const made = await reachingPlace(
    servers(it),
    { allow: allowed(it), credentials: ['egress', 'meta', 'file', 'env'] },
    {
      credentials: {
        api: { env: 'TEST_TOKEN' },
        other: { file: 'other' },
        absent: { env: 'TEST_ABSENT' },
        late: { file: 'late' },
      },
    },
  )
  await writeFile(join(made.folder, 'other'), `${other}\n`, { mode: 0o600 })
  return made
}

const reaches = (it: Api, more: object = {}): object => reachesOut(egressFor(it), more)

beforeAll(async () => {
  api = await openApi()
  at = await placeFor(api, (it) => ({
    swap: reaches(it, { credentials: [swap(it)] }),
    calling: reaches(it, { egress_when: 'calling' }),
    strays: reaches(it, { egress_when: 'calling' }),
    leaks: reaches(it, { credentials: [swap(it)] }),
    misplaces: reaches(it, { credentials: [swap(it)] }),
    background: reaches(it, { credentials: [swap(it)] }),
    remembers: reaches(it, { credentials: [swap(it)] }),
    borrows: reaches(it),
    reflects: reaches(it, { credentials: [swap(it)] }),
    meta: reaches(it, { credentials: [{ use: 'other', inject: 'meta', as: 'KEY' }] }),
    attached: reaches(it, {
      instance: 'call',
      credentials: [{ use: 'other', inject: 'env', as: 'SECRET_WORD' }],
    }),
    introduced: fixture('introduced', { profile: 'node', instance: 'call' }),
    poor: reaches(it, { credentials: [{ ...swap(it), use: 'absent' }] }),
    late: reaches(it, { credentials: [{ ...swap(it), use: 'late' }] }),
    own: reaches(it, {
      instance: 'call',
      credentials: [
        { use: 'other', inject: 'env', as: 'SECRET_WORD' },
        { use: 'api', inject: 'file', as: 'SECRET_FILE' },
      ],
    }),
    ownswap: reaches(it, { instance: 'call', credentials: [swap(it)] }),
  }))
  ;({ process: child, client } = await serve(at, { TEST_TOKEN: token }))
})
afterAll(async () => {
  await endServe({ process: child, client })
  await at[Symbol.asyncDispose]()
  await api[Symbol.asyncDispose]()
})

const call = callThrough(() => client)
const records = () => recordsOf(at)
const of = (type: string, server: string) => recordsAbout(at, type, server)

const introduction = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
}

/** A host's end of `sallyport stdio`. */
function attachTo(server: string) {
  const session = at.start(['stdio', server])
  let said = ''
  session.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const lineWith = (id: number): string | undefined =>
    said.split('\n').find((line) => line.includes(`"id":${id},`) && line.endsWith('}'))
  return {
    write: (line: string) => session.stdin?.write(`${line}\n`),
    say: (message: object) => session.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    answerTo: async (id: number) =>
      JSON.parse(await eventually(() => lineWith(id) ?? false)) as Record<string, unknown>,
    end: async (): Promise<void> => {
      session.stdin?.end()
      await eventually(() => session.exitCode !== null)
    },
  }
}

describe('by egress', () => {
  test('the API gets the token, and the server holds a placeholder in its place', async () => {
    const { status } = await call('swap', 'ask', { url: `${api.url}/repos` })
    expect(status).toBe(200)
    expect(api.asked.at(-1)).toMatchObject({ url: '/repos', authorization: `Bearer ${token}` })
    const { value } = await call('swap', 'variable', { name: 'API_TOKEN' })
    expect(value).toMatch(/^[A-Za-z0-9]{40}$/)
    const halves = (word: string): string[] => [word.slice(0, 12), word.slice(12)]
    expect((await call('swap', 'search', { parts: halves(token) }))['found']).toEqual([])
    // The same search finds what is there.
    expect((await call('swap', 'search', { parts: halves(String(value)) }))['found']).toContain('process.env')
  })

  test('the journal says what was leased, that nothing was exposed, and never the token', async () => {
    await call('swap', 'ask', { url: api.url })
    await eventually(() => of('egress.closed', 'swap').length > 0)
    expect(of('call.outcome', 'swap')[0]?.body).toMatchObject({
      credentials: ['api'],
      exposed: false,
      attribution: 'window',
      calls: [],
    })
    expect(of('egress.closed', 'swap')[0]?.body).toMatchObject({
      host: api.host,
      port: api.port,
      credentials: ['api'],
    })
    expect(JSON.stringify(records())).not.toContain(token)
  })

  test('calls that were in flight in one process are named, since nobody can tell whose a request was', async () => {
    const outcomes = (subject: string) =>
      of('call.outcome', 'swap').filter(({ body }) => body['subject'] === subject)
    const before = outcomes('ask').length
    const held = Promise.withResolvers<string>()
    api.answer(() => held.promise)
    const asking = handled(call('swap', 'ask', { url: `${api.url}/held` }))
    await eventually(() => api.asked.some(({ url }) => url === '/held'))
    await call('swap', 'wait', { ms: 1 })
    held.resolve('at last')
    await asking
    await eventually(() => outcomes('ask').length > before && outcomes('wait').length > 0)
    const outcome = (subject: string) => outcomes(subject).at(-1)
    // Of either the other is named, whichever came first.
    expect(outcome('ask')?.body['calls']).toEqual([outcome('wait')?.body['call']])
    expect(outcome('wait')?.body['calls']).toEqual([outcome('ask')?.body['call']])
  })

  test('an API that sends the token back does not show it to the server', async () => {
    api.answer(
      ({ authorization }) => `you said ${authorization ?? ''} and ${Buffer.from(token).toString('base64')}`,
    )
    const { text } = await call('reflects', 'ask', { url: api.url })
    expect(text).toContain('you said Bearer ')
    expect(text).not.toContain(token)
    expect(text).not.toContain(Buffer.from(token).toString('base64'))
    api.answer(() => 'plain')
  })

  test('a placeholder that is used between calls is dead, recorded, and costs the trust', async () => {
    await call('background', 'background', { url: `${api.url}/background`, everyMs: 100 })
    await eventually(() => of('credential.blocked', 'background').length > 0)
    expect(of('credential.blocked', 'background')[0]?.body).toMatchObject({
      credential: 'api',
      host: api.host,
      reason: 'no-lease',
      calls: [],
    })
    await eventually(() => of('trust.violated', 'background').length > 0)
    expect(of('trust.violated', 'background')[0]?.body).toMatchObject({ failure: 'MP-FH-008' })
    const before = api.asked.filter(({ url }) => url === '/background').length
    await eventually(() => of('credential.blocked', 'background').length > 1)
    expect(api.asked.filter(({ url }) => url === '/background').length).toBe(before)
    await client.call('servers/stop', { server: 'background' })
  })

  test('a placeholder that a server kept from its last process is dead, recorded, and costs the trust', async () => {
    const { value: kept } = await call('remembers', 'variable', { name: 'API_TOKEN' })
    await client.call('servers/stop', { server: 'remembers' })
    const { value: now } = await call('remembers', 'variable', { name: 'API_TOKEN' })
    expect(now).not.toBe(kept)
    expect(
      await call('remembers', 'ask', { url: `${api.url}/kept`, as: `Bearer ${String(kept)}` }),
    ).toMatchObject({
      status: 403,
      text: 'authentication failed\n',
    })
    expect(of('credential.blocked', 'remembers').map(({ body }) => body)).toMatchObject([
      { credential: 'api', host: api.host, port: api.port, reason: 'dead' },
    ])
    await eventually(() => of('trust.violated', 'remembers').length > 0)
    expect(of('trust.violated', 'remembers')[0]?.body).toMatchObject({ failure: 'MP-FH-008' })
    expect(api.asked.filter(({ url }) => url === '/kept')).toEqual([])
    expect(of('server.quarantined', 'remembers')).toEqual([])
  })

  test('a placeholder of another server is blocked wherever it can be seen, and halts the one that sends it', async () => {
    const { value: theirs } = await call('swap', 'variable', { name: 'API_TOKEN' })
    const url = `http://${api.host}:${api.plainPort}/borrowed`
    await call('borrows', 'ask', { url: `${url}?key=${String(theirs)}` }).catch(() => null)
    await eventually(() => of('credential.blocked', 'borrows').length > 0)
    const { body } = of('credential.blocked', 'borrows')[0] ?? {}
    expect(body).toMatchObject({
      credential: null,
      host: api.host,
      port: api.plainPort,
      reason: 'other-sandbox',
    })
    await eventually(() => of('server.quarantined', 'borrows').length > 0)
    expect(of('server.quarantined', 'borrows')[0]?.body).toMatchObject({ failure: 'MP-FH-008' })
    expect(api.asked.filter((it) => it.url.startsWith('/borrowed'))).toEqual([])
  })

  test('a placeholder in another place of a request is blocked, and where it stood is told', async () => {
    await call('misplaces', 'ask', { url: `${api.url}/x`, method: 'POST', body: '{"api_key":"$"}' }).catch(
      () => null,
    )
    await eventually(() => of('server.quarantined', 'misplaces').length > 0)
    expect(of('credential.blocked', 'misplaces')[0]?.body).toMatchObject({
      reason: 'other-place',
      place: 'body',
    })
    expect(of('server.quarantined', 'misplaces')[0]?.body['reason']).toBe(
      `misplaces put the placeholder of api in a body to ${api.host}:${api.port}, where it is not swapped`,
    )
  })

  test('a placeholder that is sent to another host is blocked, and halts the server', async () => {
    await call('leaks', 'ask', { url: `http://${api.host}:${api.plainPort}/elsewhere` }).catch(() => null)
    await eventually(() => of('credential.blocked', 'leaks').length > 0)
    expect(of('credential.blocked', 'leaks')[0]?.body).toMatchObject({
      reason: 'other-host',
      port: api.plainPort,
    })
    await eventually(() => of('server.quarantined', 'leaks').length > 0)
    expect(of('server.quarantined', 'leaks')[0]?.body).toMatchObject({ failure: 'MP-FH-008' })
    expect(api.asked.filter(({ url }) => url === '/elsewhere')).toEqual([])
    await expect(call('leaks', 'ask', { url: api.url })).rejects.toMatchObject({
      code: 'ERR_SCOPE_VIOLATION',
    })
  })
})

describe('by _meta', () => {
  test('a request has the value, and its record does not', async () => {
    const { data } = await client
      .call('tools/call', { server: 'meta', tool: 'meta', arguments: {} })
      .catch((error: unknown) => ({ data: error }))
    // The fixture returns what it was given, so the answer is withheld.
    expect(data).toMatchObject({ code: 'ERR_SECRET_IN_RESULT' })
    await eventually(() => of('call.outcome', 'meta').length > 0)
    const [outcome] = of('call.outcome', 'meta')
    expect(outcome?.body).toMatchObject({ outcome: 'error', exposed: true, credentials: ['other'] })
    expect(JSON.stringify(outcome?.body)).toContain('[redacted:other]')
    expect(JSON.stringify(records())).not.toContain(other)
  })

  test('what a server writes to stderr is read without it', async () => {
    await expect(call('meta', 'say', { text: 'x' })).resolves.toEqual({ text: 'x' })
    await expect(call('own', 'say', { text: other })).rejects.toMatchObject({ code: 'ERR_SECRET_IN_RESULT' })
    const { lines } = await client.call('servers/logs', { server: 'own', lines: 50 })
    expect(lines.join('\n')).toContain('[redacted:other]')
    expect(lines.join('\n')).not.toContain(other)
  })
})

test('in an attached session an answer with the secret is withheld', async () => {
  const { say, answerTo, end } = attachTo('meta')
  say({ id: 1, method: 'initialize', params: introduction })
  await answerTo(1)
  say({ method: 'notifications/initialized' })
  say({ id: 2, method: 'tools/call', params: { name: 'meta', arguments: {} } })
  expect(await answerTo(2)).toMatchObject({ error: { data: { code: 'ERR_SECRET_IN_RESULT' } } })
  await end()
})

test('what a host slips in as a secret never reaches a server', async () => {
  const { say, answerTo, end } = attachTo('swap')
  say({ id: 1, method: 'initialize', params: introduction })
  await answerTo(1)
  say({ method: 'notifications/initialized' })
  const slipped = { SLIPPED: 'x' }
  const _meta = { 'sallyport/credentials': slipped, 'Sallyport/Credentials': slipped, kept: 1 }
  say({ id: 2, method: 'tools/call', params: { name: 'keys', arguments: {}, _meta } })
  expect(await answerTo(2)).toMatchObject({ result: { structuredContent: { keys: [], others: ['kept'] } } })
  for (const [id, method] of [
    [3, 'tools/call'],
    [4, 'ping'],
  ] as const) {
    say({ id, method, params: { name: 'keys', arguments: {}, _META: { 'sallyport/credentials': slipped } } })
    expect(await answerTo(id)).toMatchObject({ error: { data: { code: 'ERR_MESSAGE_AMBIGUOUS' } } })
  }
  await end()
})

describe('with a process for each call', () => {
  test('variable and file are there for the call, in a process that nobody else has', async () => {
    const length = async (name: string): Promise<unknown> =>
      (await call('own', 'has', { name, word: [other.slice(0, 9), other.slice(9)] }))['has']
    expect(await length('SECRET_WORD')).toBe(true)
    const { path, mode, has } = await call('own', 'file', {
      name: 'SECRET_FILE',
      word: [token.slice(0, 9), token.slice(9)],
    })
    expect({ path, mode, has }).toEqual({
      path: expect.stringMatching(/^\/sallyport\/credentials\//),
      mode: '400',
      has: true,
    })
    await eventually(() => of('call.outcome', 'own').some(({ body }) => body['subject'] === 'has'))
    expect(of('call.outcome', 'own').at(-1)?.body).toMatchObject({
      exposed: true,
      attribution: 'call',
      calls: [],
    })
  })

  test('a sandbox that waited for its call gets them when the call is there, and swaps for that call alone', async () => {
    const waiting = new Map<string, number>()
    for (const server of ['own', 'ownswap']) {
      await client.call('servers/start', { server })
      waiting.set(server, (await waits({ client }, 2, server)).drawn)
    }
    const asked = api.asked.length
    for (const time of [1, 2]) {
      const word = [other.slice(0, 9), other.slice(9)]
      await expect(call('own', 'has', { name: 'SECRET_WORD', word })).resolves.toMatchObject({ has: true })
      const { status } = await call('ownswap', 'ask', { url: `${api.url}/waited` })
      expect([time, status]).toEqual([time, 200])
      for (const server of waiting.keys()) await waits({ client }, 2, server)
    }
    expect(api.asked.slice(asked).map(({ authorization }) => authorization)).toEqual(
      Array.from({ length: 2 }, () => `Bearer ${token}`),
    )
    for (const [server, drawn] of waiting)
      expect([server, await poolOf({ client }, server)]).toMatchObject([server, { drawn: drawn + 2 }])
  })

  test('calls at once have processes, placeholders and files of their own; afterwards none of it works', async () => {
    const both = await Promise.all([1, 2].map(() => call('ownswap', 'identify', { ms: 600, lingers: true })))
    const [one, two] = both.map(({ placeholder }) => placeholder)
    expect(one).not.toBe(two)
    const boots = both.map(({ boot }) => boot)
    expect(new Set(boots).size).toBe(2)
    // A placeholder of a call that is over, in the next one's process: dead, though the process of that one has not ended.
    await call('ownswap', 'ask', { url: `${api.url}/stale`, as: `Bearer ${String(one)}` }).catch(() => null)
    const blocked = await eventually(() => of('credential.blocked', 'ownswap').at(-1))
    expect(blocked.body).toMatchObject({ reason: 'dead' })
    expect(
      api.asked.filter(({ url }) => url === '/stale').map(({ authorization }) => authorization),
    ).not.toContain(`Bearer ${token}`)
    const { status } = await call('ownswap', 'ask', { url: `${api.url}/fresh` })
    expect(status).toBe(200)
    expect(api.asked.at(-1)).toMatchObject({ url: '/fresh', authorization: `Bearer ${token}` })
  })

  test('an attached session introduces its host to each of them, byte for byte', async () => {
    const params =
      '{ "clientInfo": {"version":"1.0","name":"hôst 𝄞","x":12345678901234567890.0}, "protocolVersion":"2025-03-26","capabilities":{"sampling":{},"roots":{"listChanged" : true},"experimental":{"a\\u0062":-0}}}'
    const initialized =
      '{"method":"notifications/initialized", "params":{"_meta":{"é":1.50}},"jsonrpc":"2.0"}'
    const { write, say, answerTo, end } = attachTo('introduced')
    write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":${params}}`)
    await answerTo(1)
    write(initialized)
    for (const id of [2, 3]) {
      say({ id, method: 'tools/call', params: { name: 'introduction', arguments: {} } })
      const answer = await answerTo(id)
      expect(answer).toMatchObject({
        result: { structuredContent: { lines: [expect.any(String), initialized] } },
      })
      const { lines } = (answer['result'] as { structuredContent: { lines: [string] } }).structuredContent
      expect(lines[0]).toBe(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":${params}}`)
    }
    await end()
  })

  test('an attached session has lists from one process and each call from its own', async () => {
    const { say, answerTo, end } = attachTo('attached')
    say({ id: 1, method: 'initialize', params: introduction })
    await answerTo(1)
    say({ method: 'notifications/initialized' })
    say({ id: 2, method: 'tools/list' })
    await answerTo(2)
    const word = [other.slice(0, 9), other.slice(9)]
    say({ id: 3, method: 'tools/call', params: { name: 'has', arguments: { name: 'SECRET_WORD', word } } })
    say({ id: 4, method: 'tools/call', params: { name: 'identify', arguments: { ms: 1 } } })
    say({ id: 5, method: 'tools/call', params: { name: 'identify', arguments: { ms: 1 } } })
    expect(await answerTo(3)).toMatchObject({ result: { structuredContent: { has: true } } })
    const boots = await Promise.all([answerTo(4), answerTo(5)])
    const boot = { result: { structuredContent: { boot: expect.any(String) as string } } }
    expect(boots).toMatchObject([boot, boot])
    expect(new Set(boots.map(({ result }) => JSON.stringify(result))).size).toBe(2)
    await end()
  })
})

test('a source that fails at the start leaves the server in needs-auth, and says nothing of why to hosts', async () => {
  const refusal: unknown = await call('poor', 'ask', { url: api.url }).catch((thrown: unknown) => thrown)
  const { message, details } = SallyportError.from(refusal)
  expect(message).toContain('authentication failed')
  expect(message + JSON.stringify(details)).not.toContain('TEST_ABSENT')
  await eventually(() => of('credential.failed', 'poor').length > 0)
  expect(of('credential.failed', 'poor')[0]?.body['reason']).toContain('TEST_ABSENT')
  const { servers } = await client.call('servers/list', {})
  expect(servers.find(({ name }) => name === 'poor')?.state).toBe('needs-auth')
  // An operator who tests it is told why.
  const { ok, steps } = await client.call('servers/test', { server: 'poor' })
  expect(ok).toBe(false)
  expect(steps[0]).toMatchObject({ step: 'launch', detail: expect.stringContaining('TEST_ABSENT') as string })
})

test('a server in needs-auth is started by the first call that finds its source mended', async () => {
  const state = async () =>
    (await client.call('servers/list', {})).servers.find(({ name }) => name === 'late')?.state
  const late = 'late'.padEnd(token.length, '-0123456789')
  await expect(call('late', 'ask', { url: api.url })).rejects.toThrow(/authentication failed/)
  // Asked again, it is read again.
  await expect(call('late', 'ask', { url: api.url })).rejects.toThrow(/authentication failed/)
  await eventually(() => of('credential.failed', 'late').length === 2)
  expect(await state()).toBe('needs-auth')
  await writeFile(join(at.folder, 'late'), `${late}\n`, { mode: 0o600 })
  expect(await call('late', 'ask', { url: `${api.url}/late` })).toMatchObject({ status: 200 })
  expect(api.asked.at(-1)).toMatchObject({ url: '/late', authorization: `Bearer ${late}` })
  expect(await state()).toBe('connected')
})
