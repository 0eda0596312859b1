// Attacks on credentials by a server in a container, row by row against the same under bubblewrap, and what none of them may get.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { SallyportError } from '../../src/errors.ts'
import { type Api, openApi } from '../support/api.ts'
import { serve } from '../support/daemon.ts'
import { engineTest } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { callThrough, reachesOut, reachingPlace, recordsAbout, recordsOf } from '../support/reaching-out.ts'

const token = 'real-0123456789-token-abcdefghij'
const other = 'other/9876543210+token"zyxwvutsrq'
const halves = (word: string): string[] => [word.slice(0, 12), word.slice(12)]

/** How a secret may be written by who would have it seen. */
const forms = (word: string): Readonly<Record<string, string>> => ({
  plain: word,
  base64: Buffer.from(word).toString('base64'),
  'base64 within more': Buffer.from(`x${word}`).toString('base64'),
  hex: Buffer.from(word).toString('hex'),
  'URL-encoded': encodeURIComponent(word),
  'as JSON': JSON.stringify(word),
})

type Outcomes = Record<string, unknown>

/** Tries everything under a daemon whose servers have that driver. */
const attack = async (
  driver: 'bubblewrap' | 'docker',
  environment: Readonly<Record<string, string>>,
): Promise<{ readonly outcomes: Outcomes; readonly records: string }> => {
  await using api = await openApi()
  await using at = await reachingPlace(
    serversFor(api),
    { allow: grantsOf(api), credentials: ['egress', 'meta', 'file', 'env'] },
    {
      driver,
      credentials: { api: { env: 'TEST_TOKEN' }, other: { file: 'other' }, absent: { env: 'TEST_ABSENT' } },
    },
  )
  await writeFile(join(at.folder, 'other'), `${other}\n`, { mode: 0o600 })
  const { process: child, client } = await serve(at, { ...environment, TEST_TOKEN: token })
  try {
    const outcomes = await tryAll(client, api)
    await eventually(() => recordsAbout(at, 'server.quarantined', 'strays').length > 0)
    outcomes['recorded'] = recordsAbout(at, 'credential.blocked', 'strays').map(({ body }) => body['reason'])
    const { lines } = await client.call('servers/logs', { server: 'own', lines: 100 })
    return { outcomes, records: JSON.stringify([recordsOf(at), lines]) }
  } finally {
    await client[Symbol.asyncDispose]()
    child.kill('SIGTERM')
    await eventually(() => child.exitCode !== null)
  }
}

const grantsOf = (it: Api) =>
  [it.port, it.plainPort].map((port) => ({
    host: it.host,
    port,
    address: it.address,
    private: true,
    reason: 'a test',
  }))

const serversFor = (it: Api): Readonly<Record<string, object>> => {
  const egress = grantsOf(it).map((grant) => ({ ...grant, tls: grant.port === it.port }))
  const swap = {
    use: 'api',
    inject: 'egress',
    as: 'API_TOKEN',
    hosts: [`${it.host}:${it.port}`],
    ca_file: it.caFile,
  }
  const one = (credentials: readonly object[], more: object = {}): object =>
    reachesOut(egress, { credentials, ...more })
  return {
    swap: one([swap]),
    strays: one([swap]),
    borrows: one([]),
    meta: one([{ use: 'other', inject: 'meta', as: 'KEY' }]),
    poor: one([{ ...swap, use: 'absent' }]),
    own: one(
      [
        { use: 'other', inject: 'env', as: 'WORD' },
        { use: 'api', inject: 'file', as: 'FILE' },
      ],
      { instance: 'call' },
    ),
    ownswap: one([swap], { instance: 'call' }),
  }
}

const tryAll = async (client: Client, api: Api): Promise<Outcomes> => {
  const outcomes: Outcomes = {}
  const call = callThrough(() => client)
  const attempt = async (
    name: string,
    server: string,
    tool: string,
    args: Record<string, unknown> = {},
  ): Promise<Record<string, unknown>> => {
    const asked = api.asked.length
    const said = await call(server, tool, args).catch((error: unknown) => ({
      code: SallyportError.from(error).code,
    }))
    const got = api.asked.slice(asked).map(({ url, authorization, body }) => [url, authorization, body])
    expect(outcomes, 'a row for each attempt').not.toHaveProperty([name])
    outcomes[name] = { said, got }
    return said
  }
  const { url } = api
  await attempt('a request', 'swap', 'ask', { url: `${url}/plain` })
  await attempt('the token in memory, environments and files', 'swap', 'search', { parts: halves(token) })
  const { value } = await attempt('the variable', 'swap', 'variable', { name: 'API_TOKEN' })
  await attempt('its placeholder, found the same way', 'swap', 'search', { parts: halves(String(value)) })
  for (const as of ['Basic $', '$', 'x$', 'Bearer $ $'])
    await attempt(`the header ${as}`, 'swap', 'ask', { url: `${url}/header`, as })
  await attempt('another header', 'swap', 'ask', { url: `${url}/other-header`, header: 'x-api-key', as: '$' })
  await attempt('in a body', 'swap', 'ask', {
    url: `${url}/body`,
    method: 'POST',
    body: '{"key":"$"}',
    as: '',
  })
  await attempt('in the query', 'swap', 'ask', { url: `${url}/query?key=${String(value)}`, as: '' })
  for (const [form, text] of Object.entries(forms(token))) {
    api.answer(() => `before ${text} after`)
    await attempt(`reflected, ${form}`, 'swap', 'ask', { url: `${url}/reflected` })
  }
  api.answer(() => 'plain')
  for (const [name, address] of Object.entries({
    'nobody granted': 'https://elsewhere.demo.test/',
    'an address': `https://127.0.0.1:${api.port}/`,
    'another port': `https://${api.host}:1/`,
  }))
    await attempt(`to ${name}`, 'swap', 'ask', { url: address })
  await attempt('another’s placeholder', 'borrows', 'ask', {
    url: `${url}/borrowed?key=${String(value)}`,
    as: '',
  })
  await attempt('in the clear', 'strays', 'ask', { url: `http://${api.host}:${api.plainPort}/clear` })
  await attempt('in _meta, its name', 'meta', 'keys')
  await attempt('in _meta, itself', 'meta', 'meta')
  await attempt('in _meta, said', 'meta', 'say', { text: other })
  await attempt('in _meta, in the environment', 'meta', 'search', { parts: halves(other) })
  await attempt('a source that is not there', 'poor', 'ask', { url })
  await attempt('in a variable', 'own', 'has', { name: 'WORD', word: halves(other) })
  await attempt('in a file', 'own', 'file', { name: 'FILE', word: halves(token) })
  await attempt('where a variable is seen', 'own', 'search', { parts: halves(other) })
  await attempt('where a file is seen', 'own', 'search', { parts: halves(token) })
  await attempt('said from a variable', 'own', 'variable', { name: 'WORD' })
  await attempt('read from /proc', 'own', 'read', { path: '/proc/self/environ' })
  for (const [form, text] of Object.entries(forms(other)))
    await attempt(`said, ${form}`, 'own', 'say', { text: `x${text}x` })
  const { placeholder } = await attempt('a call of its own', 'ownswap', 'identify', { ms: 1 })
  await attempt('the token in a call of its own', 'ownswap', 'search', { parts: halves(token) })
  await attempt('its placeholder in the next', 'ownswap', 'ask', {
    url: `${url}/stale`,
    as: `Bearer ${String(placeholder)}`,
  })
  await attempt('the next’s own', 'ownswap', 'ask', { url: `${url}/fresh` })
  return outcomes
}

/** What differs from run to run: placeholders, ports, names of files and of processes, dates. */
const told = (outcomes: Outcomes): Outcomes =>
  Object.fromEntries(
    Object.entries(outcomes).map(([name, outcome]) => [
      name,
      JSON.stringify(outcome)
        .replaceAll(/\b[A-Za-z0-9]{40}\b/g, 'PLACEHOLDER')
        .replaceAll(/(?<=:)\d{4,5}\b/g, 'PORT')
        .replaceAll(/"boot":"[^"]*"/g, '"boot"')
        .replaceAll(/\["date","[^"]*"\]/g, '"date"')
        .replaceAll(/\/proc\/\d+\//g, '/proc/PID/'),
    ]),
  )

engineTest(
  'a server in a container gets of credentials what it gets under bubblewrap, and nothing that nobody may have',
  async ({ engine: { environment } }) => {
    const [inside, usual] = await Promise.all([attack('docker', environment), attack('bubblewrap', {})])
    expect(told(inside.outcomes)).toEqual(told(usual.outcomes))
    expect(Object.keys(inside.outcomes).length).toBeGreaterThan(40)
    expect(inside.outcomes['recorded']).toEqual(['other-host'])
    for (const { outcomes, records } of [inside, usual]) {
      const answers = JSON.stringify(Object.values(outcomes).map((it) => (it as { said?: unknown }).said))
      for (const word of [token, other])
        for (const form of [word, Buffer.from(word).toString('base64'), Buffer.from(word).toString('hex')])
          expect(answers + records).not.toContain(form)
    }
    const got = (name: string): unknown => (inside.outcomes[name] as { got: unknown }).got
    expect(got('a request')).toEqual([['/plain', `Bearer ${token}`, '']])
    expect(got('the next’s own')).toEqual([['/fresh', `Bearer ${token}`, '']])
    for (const name of [
      'in the clear',
      'another’s placeholder',
      'its placeholder in the next',
      'to nobody granted',
    ])
      expect([name, got(name)]).toEqual([name, []])
    const said = (name: string): unknown => (inside.outcomes[name] as { said: unknown }).said
    expect(said('in a variable')).toEqual({ has: true })
    expect(said('in a file')).toMatchObject({ has: true, mode: '400' })
    expect(said('the token in memory, environments and files')).toEqual({ found: [] })
  },
)
