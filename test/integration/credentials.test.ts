// A server that calls an API with a token from its environment, unchanged, and never has the token.
import { writeFile, mkdir } from 'node:fs/promises'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { type Api, openApi } from '../support/api.ts'
import { configOf, fixture, place, type Place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'

const token = 'real-0123456789-token-abcdefghij'
const other = 'other-9876543210-token-zyxwvutsrq'

let api: Api
let at: Place
let client: Client
let child: TestDaemon['process']

const allowed = (it: Api) => [
  { host: it.host, port: it.port, private: true, reason: 'the API' },
  { host: it.host, port: it.plainPort, private: true, reason: 'the same, in the clear' },
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
  const config = configOf(servers(it), {
    credentials: { api: { env: 'TEST_TOKEN' }, other: { file: 'other' } },
  })
  const made = await place(config)
  await mkdir(join(made.folder, 'profiles'), { mode: 0o700 })
  const profile = {
    version: 1,
    name: 'open',
    extends: 'node',
    widens: true,
    network: { mode: 'allowlist', allow: allowed(it) },
    credentials: ['egress', 'meta', 'file', 'env'],
  }
  await writeFile(join(made.folder, 'profiles', 'open.yaml'), JSON.stringify(profile), { mode: 0o600 })
  await writeFile(join(made.folder, 'other'), `${other}\n`, { mode: 0o600 })
  return made
}

const reaches = (it: Api, more: object = {}): object =>
  fixture('reaches-out', { profile: 'open', egress: egressFor(it), ...more })

beforeAll(async () => {
  api = await openApi()
  at = await placeFor(api, (it) => ({
    swap: reaches(it, { credentials: [swap(it)] }),
    calling: reaches(it, { egress_when: 'calling' }),
    strays: reaches(it, { egress_when: 'calling' }),
    leaks: reaches(it, { credentials: [swap(it)] }),
    background: reaches(it, { credentials: [swap(it)] }),
    reflects: reaches(it, { credentials: [swap(it)] }),
    meta: reaches(it, { credentials: [{ use: 'other', inject: 'meta', as: 'KEY' }] }),
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
  await client[Symbol.asyncDispose]()
  child.kill('SIGTERM')
  await eventually(() => child.exitCode !== null, 20_000)
  await at[Symbol.asyncDispose]()
  await api[Symbol.asyncDispose]()
})

const call = async (
  server: string,
  tool: string,
  args: Record<string, unknown> = {},
): Promise<Record<string, unknown>> => {
  const { data } = await client.call('tools/call', { server, tool, arguments: args })
  return (data as { structuredContent: Record<string, unknown> }).structuredContent
}
const records = (): readonly { type: string; body: Record<string, unknown> }[] =>
  readdirSync(join(at.stateDir, 'journal'))
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(join(at.stateDir, 'journal', name), 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { type: string; body: Record<string, unknown> })
const of = (type: string, server: string) =>
  records().filter((record) => record.type === type && record.body['server'] === server)

describe('by egress', () => {
  test('the API gets the token, and the server holds a placeholder in its place', async () => {
    const { status } = await call('swap', 'ask', { url: `${api.url}/repos` })
    expect(status).toBe(200)
    expect(api.asked.at(-1)).toMatchObject({ url: '/repos', authorization: `Bearer ${token}` })
    const { value } = await call('swap', 'variable', { name: 'API_TOKEN' })
    expect(value).toMatch(/^[A-Za-z0-9]{40}$/)
    const { found } = await call('swap', 'search', { parts: [token.slice(0, 12), token.slice(12)] })
    expect(found).toEqual([])
    const seen = await call('swap', 'search', {
      parts: [String(value).slice(0, 20), String(value).slice(20)],
    })
    expect(seen['found']).toContain('process.env')
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
    const [closed] = of('egress.closed', 'swap')
    expect(closed?.body).toMatchObject({ host: api.host, port: api.port, credentials: ['api'] })
    expect(
      readFileSync(
        join(
          at.stateDir,
          'journal',
          readdirSync(join(at.stateDir, 'journal')).find((name) => name.endsWith('.jsonl')) ?? '',
        ),
        'utf8',
      ),
    ).not.toContain(token)
  })
})
