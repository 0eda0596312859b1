// A person is asked in both eras: flagged where a secret is asked for, and nothing of the answer is written anywhere.
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ServerSettings } from '../../../src/schema/settings.ts'
import { sensitiveFields } from '../../../src/supervisor/questions/sensitive.ts'
import { askable, askableMeta, attach, type HostEnd } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { fixture } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'

const eras = ['2025-11-25', '2026-07-28'] as const
type Era = (typeof eras)[number]

const answer = 'hunter2-said-the-person'

async function asked(
  era: Era,
  fields: readonly string[],
  more: Partial<ServerSettings> = {},
): Promise<HostEnd> {
  const args = [fixture('asks-person.mjs'), era === '2026-07-28' ? 'modern' : 'legacy']
  const elicitation = { enabled: true, timeoutMs: 5000, queue: 16 }
  const host = await attach(serverSettings('asks-person.mjs', { args, elicitation, ...more }))
  if (era === '2025-11-25') {
    const params = { protocolVersion: era, capabilities: askable }
    host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params })
    await host.answer('i')
  }
  const params = { name: 'ask', arguments: { fields }, _meta: askableMeta }
  host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  return host
}

/** Answers the question as a host of that era does; resolves with the call's last result. */
async function reply(host: HostEnd, era: Era, content: object): Promise<unknown> {
  const said = { action: 'accept', content }
  if (era === '2025-11-25') {
    const question = await eventually(() => host.lines.find((line) => line.includes('elicitation/create')))
    host.send({ jsonrpc: '2.0', id: (JSON.parse(question) as { id: string }).id, result: said })
    return (await host.answer(1)).result
  }
  const { requestState } = (await host.answer(1)).result as unknown as { requestState: string }
  const params = { name: 'ask', arguments: { fields: [] }, inputResponses: { who: said }, requestState }
  host.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params })
  return (await host.answer(2)).result
}

function everythingWritten({ governed, events, logs }: HostEnd): string {
  const files = readdirSync(governed.directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
  return [...files, JSON.stringify(events), logs.last(1000).lines.join('\n')].join('\n')
}

test.each(eras)(
  'in %s the server reads the answer, and no record, event or log holds any of it',
  async (era) => {
    await using host = await asked(era, ['name'])
    expect(await reply(host, era, { name: answer })).toMatchObject({
      structuredContent: { action: 'accept', characters: answer.length },
    })
    await eventually(
      () =>
        host.governed.records().filter(({ type }) => type === 'call.outcome').length ===
        (era === eras[0] ? 1 : 2),
    )
    const written = everythingWritten(host)
    expect(written).toContain('call.intent')
    expect(written).not.toContain(answer)
    expect(written).not.toContain('the state of before')
    expect(host.eventsOf('session/sensitive-question')).toEqual([])
  },
)

test.each(eras)('in %s a question for a secret passes as it is, and is flagged each time', async (era) => {
  await using host = await asked(era, ['name', 'api_key', 'userPassword'])
  await reply(host, era, { name: answer })
  expect(host.eventsOf('session/sensitive-question').map(({ detail }) => detail)).toMatchObject([
    { fields: ['api_key', 'userPassword'] },
  ])
})

test('a governed method other than a call keeps the answers out of the record and the approval, too', async () => {
  const rules = [{ permission: 'mcp:*:*', action: 'ask', where: {}, origin: 'rules[0]' }] as const
  await using host = await attach(serverSettings('raw-script.mjs'), { rules })
  const { governance } = host.governed
  using _listening = { [Symbol.dispose]: governance.listen() }
  const params = {
    uri: 'x:1',
    inputResponses: { who: { action: 'accept', content: { a: answer } } },
    requestState: answer,
  }
  host.send({ jsonrpc: '2.0', id: 1, method: 'resources/read', params })
  const [question] = await eventually(
    () => governance.approvals.pending().length > 0 && governance.approvals.pending(),
  )
  expect(question?.text).toBe('{"uri":"x:1"}')
  governance.approvals.approve(question?.id ?? '', '0', null)
  await eventually(() => host.governed.records().some(({ type }) => type === 'call.intent'))
  const written = everythingWritten(host)
  expect(written).toContain('[not recorded]')
  expect(written).not.toContain(answer)
  // A digest by which a short answer could be guessed is as good as the answer.
  expect(written).not.toContain(hash('sha256', JSON.stringify(params)))
  expect(written).toMatch(/"bytes_digest":"[0-9a-f]{64}"/)
})

test.each(eras)('in %s a sandboxed server asks for nothing, whatever it is set to', async (era) => {
  const more = {
    trust: 'sandboxed',
    sampling: true,
    tools: { allow: ['*'], deny: [], readOnly: [] },
  } as const
  await using host = await asked(era, ['name'], more)
  expect((await host.answer(1)).result).toMatchObject({
    structuredContent: { action: 'decline', characters: 0 },
  })
  expect(host.lines.some((line) => line.includes('elicitation/create'))).toBe(false)
})

test.each(eras)(
  'in %s a server without elicitation gets a no at once, and people can find out why',
  async (era) => {
    const elicitation = { enabled: false, timeoutMs: 5000, queue: 16 }
    await using host = await asked(era, ['name'], { elicitation })
    expect((await host.answer(1)).result).toMatchObject({ structuredContent: { action: 'decline' } })
    const told = [...host.eventsOf('session/declined'), ...host.eventsOf('session/input-answered')]
    expect(told).toHaveLength(1)
  },
)

test('sampling by a sandboxed server is refused, whatever it is set to', async () => {
  const more = {
    trust: 'sandboxed',
    sampling: true,
    tools: { allow: ['*'], deny: [], readOnly: [] },
  } as const
  await using host = await attach(serverSettings('asks.mjs', more))
  const hello = { protocolVersion: '2025-11-25', capabilities: askable }
  host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: hello })
  await host.answer('i')
  const params = { name: 'ask', arguments: { method: 'sampling/createMessage' } }
  host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  expect((await host.answer(1)).result).toMatchObject({
    structuredContent: { error: { data: { code: 'ERR_METHOD_REFUSED' } } },
  })
})

test('questions wait up to the bound of the queue, and the next one is declined', async () => {
  const elicitation = { enabled: true, timeoutMs: 60_000, queue: 16 }
  await using host = await asked('2025-11-25', ['n'], { elicitation })
  for (let id = 2; id <= 17; id++)
    host.send({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'ask', arguments: { fields: ['n'] } },
    })
  expect((await host.answer(17)).result).toMatchObject({ structuredContent: { action: 'decline' } })
  expect(host.lines.filter((line) => line.includes('elicitation/create'))).toHaveLength(16)
  expect(host.eventsOf('session/declined')[0]?.detail['reason']).toContain('elicitation.queue (16)')
})

test('more questions in one result than the queue holds are declined together', async () => {
  const elicitation = { enabled: true, timeoutMs: 60_000, queue: 0 }
  await using host = await asked('2026-07-28', ['n'], { elicitation })
  expect((await host.answer(1)).result).toMatchObject({ structuredContent: { action: 'decline' } })
})

test.each([
  'password',
  'Passwort_or_password',
  'userPassword',
  'PASSWD',
  'pass',
  'pin',
  'PIN',
  'otp',
  'api_key',
  'apiKey',
  'API-KEY',
  'accessToken',
  'client secret',
  'private.key',
  'cvv',
  'card_number',
  'recoveryCode',
  'ｐassword',
  'x_auth',
  'ssn',
])('%s is flagged', (name) => {
  expect(sensitiveFields({ requestedSchema: { properties: { [name]: {} } } })).toHaveLength(1)
})

test.each([
  'Passwort',
  'mot de passe',
  'contraseña',
  'Lösenord',
  'hasło',
  'пароль',
  '密码',
  'パスワード',
  '비밀번호',
  'pаsswоrd', // with Cyrillic letters
  'ραssword', // with Greek ones
  'p\u200bassword',
])('in other languages, and other letters: %s is flagged', (name) => {
  expect(sensitiveFields({ requestedSchema: { properties: { [name]: {} } } })).toHaveLength(1)
})

test.each([
  'pincode',
  'PIN code',
  'PINCODE',
  'passkey',
  'jwt',
  'cvv2',
  'CVC2',
  'authorization',
  'Authorization header',
  'otpcode',
  'otp_code',
  'pat',
  'PAT',
  'P1N',
  '0TP',
  'P4SS',
  '1BAN',
  'access code',
  'smsCode',
  'session_id',
  'sessionId',
  'card no',
  'cardNo',
  'mpin',
  'pswd',
  'recovery phrase',
  'seed',
  'passw0rd',
  'p4$$w0rd',
  'p@ssword',
  'pa55',
  't0k3n',
  'cr3dent1al',
  '53cret',
])('a name that many give to a secret is flagged: %s', (name) => {
  expect(sensitiveFields({ requestedSchema: { properties: { [name]: {} } } })).toHaveLength(1)
})

test.each([
  'pattern',
  'path',
  'patient',
  'seedling',
  'author',
  'authority',
  'compatible',
  'passenger',
  'passengers_count',
  'sessions_count',
  'session_ideas',
  'card_note',
  'discard notes',
  'what I ban',
  'p in all',
  'bypass keyboard',
  'spin codes',
  'accessible codes',
  'opinion',
  'shipping',
  'md5',
  'sha512',
  'h264',
  'b2b@work',
  'price in $',
  '10 to 15 items',
  'address_1',
])('a plain name is not: %s', (name) => {
  expect(sensitiveFields({ requestedSchema: { properties: { [name]: {} } } })).toEqual([])
})

test('what a field is for is told by its description, and by the words of the question; one within another counts', () => {
  const inner = { type: 'object', properties: { password: { type: 'string' } } }
  for (const field of [
    { description: 'Type your passphrase here.' },
    { type: 'string', format: 'password' },
    inner,
    { type: 'array', items: inner },
    { anyOf: [{ type: 'string' }, inner] },
  ])
    expect(sensitiveFields({ requestedSchema: { properties: { a: field } } })).toHaveLength(1)
  const message = 'Please give me the API key of the project.'
  const asked = (words: string) => ({ message: words, requestedSchema: { properties: { answer: {} } } })
  expect(sensitiveFields(asked(message))).toEqual(['(its words)'])
  expect(sensitiveFields(asked('What is your name?'))).toEqual([])
  const padding = 'a '.repeat(3000)
  for (const text of [`${padding}введите пароль`, `${padding}your password`])
    expect(sensitiveFields(asked(text))).toEqual(['(its words)'])
  expect(sensitiveFields(asked('a '.repeat(40_000)))).toEqual(['(texts that are too long)'])
  expect(sensitiveFields(asked(`${padding}your name`))).toEqual([])
})

test('a form that is as deep and as wide as one likes is looked at no longer for it', () => {
  let deep: object = { properties: { password: {} } }
  for (let n = 0; n < 100_000; n += 1) deep = { properties: { a: deep } }
  expect(sensitiveFields({ requestedSchema: deep })).toEqual([])
  const wide = { anyOf: Array.from({ length: 100_000 }, () => ({ anyOf: [{}] })) }
  expect(sensitiveFields({ requestedSchema: wide })).toEqual([])
})

test.each(['name', 'email', 'city', 'compass', 'pinned', 'option', 'author', 'passenger', 'key', 'keyboard'])(
  '%s is not flagged',
  (name) => {
    expect(sensitiveFields({ requestedSchema: { properties: { [name]: {} } } })).toEqual([])
  },
)

test('of a form that nobody fills in the beginning is looked at, and that there is more is told', () => {
  const fields = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`field${n}`, {}]))
  const properties = { pin: {}, ...fields, password: {} }
  expect(sensitiveFields({ requestedSchema: { properties } })).toEqual(['pin', '98978 further fields'])
})

test('a title says it, too, and nothing that is no schema is stumbled over', () => {
  expect(sensitiveFields({ requestedSchema: { properties: { a: { title: 'Your password' } } } })).toEqual([
    'a',
  ])
  for (const params of [null, 1, {}, { requestedSchema: null }, { requestedSchema: { properties: [1] } }])
    expect(sensitiveFields(params)).toEqual([])
})
