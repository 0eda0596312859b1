// Whatever the rules: what decides a call, what `explain` says beforehand, what it says afterwards, and what happens are one thing.
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CallId } from '../../src/lib/ids.ts'
import { attached, type AttachedHost } from '../support/attached.ts'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { RawCaller, refusalOf } from '../support/raw-caller.ts'

interface Rule {
  readonly permission: string
  readonly action: 'allow' | 'ask' | 'deny'
  readonly where?: Readonly<Record<string, string>>
}
interface Call {
  readonly server: 'open' | 'wary' | 'boxed'
  readonly subject: 'echo' | 'change' | 'resources/read'
  /** As it is written */
  readonly args: string
}
/** Who decides, and how: a rule by its number, another entry by its name, or nobody. */
interface Verdict {
  readonly action: Rule['action']
  readonly by: number | string | null
}

const lists = {
  open: { trust: 'trusted', tools: { deny: ['change'] } },
  wary: { trust: 'untrusted', tools: { allow: ['*'] } },
  boxed: { trust: 'sandboxed', tools: { allow: ['echo'] } },
}
const entry = (more: object): object =>
  fixture('changes', { args: ['/app/changes.mjs', '/tmp/reached'], ...more })
const gone = fixture('crash-at-start', { restart: { start_attempts: 1 } })
const servers = Object.fromEntries(Object.entries(lists).map(([name, more]) => [name, entry(more)]))

const anyRule = fc.record<Rule>(
  {
    permission: fc
      .tuple(
        fc.constantFrom('*', '*', 'open', 'wary', 'boxed', '????', 'o*n', 'Open'),
        fc.constantFrom(
          '*',
          'echo',
          'echo',
          'e*',
          'resources/read',
          'resources/*',
          '*/*',
          'ech?',
          'change',
          'Echo',
        ),
      )
      .map((parts) => ['mcp', ...parts].join(':')),
    action: fc.constantFrom('allow', 'allow', 'ask', 'deny'),
    where: fc.dictionary(
      fc.constantFrom(
        '/uri',
        '/a~1b',
        '/m~0n',
        '/m~01n',
        '/list/0',
        '/list/01',
        '/deep/x',
        '/',
        '/constructor',
        '/__proto__/x',
      ),
      fc.constantFrom('*', '**', '1', 'x', '/docs/**', '/docs/*', 'note:///**', 'note:///a', '?', '\u00e9'),
      { maxKeys: 2, size: 'max' },
    ),
  },
  { requiredKeys: ['permission', 'action'] },
)
const anyValue = fc.constantFrom(
  '1',
  '1.0',
  '1e0',
  '-0',
  '12345678901234567890',
  'null',
  'true',
  '"x"',
  '"1"',
  '""',
  '"/docs/a"',
  '"/docs/a/b"',
  '"/docs/../a"',

  '"note:///a"',
  '"note:///b/c"',
  '"NOTE:///a"',
  '["x"]',
  '[["x"]]',
  '{"x":"x"}',
  '{"X":"x"}',
  '{"x":1,"x":"x"}',
  '"\\u0000"',
  '"\u00e9"',
  '"e\u0301"',
  '"\\u00e9"',
  '"\\ud800"',
  '{"__proto__":"x"}',
  '"\u{1f600}"',
)
const anyKey = fc.constantFrom(
  'uri',
  'a/b',
  'm~n',
  'm~1n',
  'list',
  'deep',
  '',
  'constructor',
  '__proto__',
  'URI',
  'LIST',
  'other',
)
const anyArguments = fc
  .array(fc.tuple(anyKey, anyValue), { maxLength: 3, size: 'max' })
  .map((entries) => `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`)
const anyCall = fc.record<Call>({
  server: fc.constantFrom('open', 'wary', 'boxed'),
  subject: fc.constantFrom('echo', 'echo', 'change', 'resources/read'),
  args: anyArguments,
})
const anyFile = fc.record({
  rules: fc.array(anyRule, { minLength: 2, maxLength: 6, size: 'max' }),
  calls: fc.array(anyCall, { minLength: 5, maxLength: 5 }),
})

/** What the documentation says, in other words than the code's. */
function verdictOf({ server, subject, args }: Call, rules: readonly Rule[]): Verdict {
  const { trust } = lists[server]
  if (server === 'boxed' && subject === 'resources/read') return { action: 'deny', by: 'boxed.trust' }
  if (server === 'boxed' && subject === 'change') return { action: 'deny', by: 'boxed.tools.allow' }
  if (server === 'open' && subject === 'change') return { action: 'deny', by: 'open.tools.deny[0]' }
  const value: unknown = JSON.parse(args)
  const naming = rules.flatMap((rule, by) => {
    const [, where = '', what = ''] = rule.permission.split(':')
    return isLike(where, server) && isLike(what, subject) ? [{ ...rule, by, where: rule.where ?? {} }] : []
  })
  const blurred = naming.find(({ where }) =>
    Object.keys(where).some((pointer) => isBlurred(value, keysOf(pointer))),
  )
  if (blurred !== undefined) return { action: 'deny', by: blurred.by }
  const holding = naming.filter(({ action, where }) => {
    const told = Object.entries(where).map(([pointer, glob]) => isHeld(value, keysOf(pointer), glob))
    return action === 'allow' ? told.every((one) => one === true) : !told.includes(false)
  })
  const first = holding.find(({ action }) => action === 'deny') ?? holding[0]
  if (first === undefined) return { action: 'ask', by: null }
  const isExact = !/[*?]/.test(first.permission)
  const isAsked = trust === 'untrusted' && first.action === 'allow' && !isExact
  return { action: isAsked ? 'ask' : first.action, by: first.by }
}

const keysOf = (pointer: string): readonly string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((key) => key.replace(/~[01]/g, (escape) => (escape === '~1' ? '/' : '~')))
const isLike = (glob: string, name: string): boolean =>
  new RegExp(`^${glob.replaceAll('?', '.').replaceAll('*', '.*')}$`, 'su').test(name)
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const inside = (value: unknown, key: string): unknown => {
  if (!isObject(value) || (Array.isArray(value) && key !== '0')) return undefined
  return Object.entries(value).find(([name]) => name === key)?.[1]
}
function isBlurred(value: unknown, [key = '', ...deeper]: readonly string[]): boolean {
  if (!isObject(value)) return false
  const isOther = (name: string): boolean =>
    name === '__proto__' || (name !== key && name.toLowerCase() === key)
  if (!Array.isArray(value) && Object.keys(value).some(isOther)) return true
  return deeper.length > 0 && isBlurred(inside(value, key), deeper)
}
function isHeld(value: unknown, keys: readonly string[], glob: string): boolean | null {
  const text = keys.reduce(inside, value)
  if (typeof text !== 'string' || /[\0\ud800]/.test(text.replaceAll('\u{1f600}', ''))) return null
  if (text.split('/').includes('..')) return null
  if (glob.includes('://') && text === '') return null
  if (glob.includes('://')) return text.startsWith('note:') ? isPath(glob, text) : null
  if (glob.includes('/') && /.\/\//.test(text)) return null
  return isPath(glob, text)
}
const isPath = (glob: string, text: string): boolean =>
  new RegExp(
    `^${glob.replaceAll('?', '[^/]').replace(/\*+/g, (stars) => (stars.length > 1 ? '.*' : '[^/]*'))}$`,
    'su',
  ).test(text)

let at: TestDaemon
let operator: RawCaller
const sessions = new Map<string, AttachedHost>()
beforeAll(async () => {
  at = await daemon(configOf({ ...servers, gone }))
  operator = await RawCaller.open(join(at.runtimeDir, 'operator/operator.sock'))
  for (const server of Object.keys(servers)) sessions.set(server, await attached(at, server))
  for (const session of sessions.values()) await session.call('echo')
})
afterAll(async () => {
  for (const session of sessions.values()) await session[Symbol.asyncDispose]()
  operator[Symbol.dispose]()
  await at[Symbol.asyncDispose]()
})

/** One call, made, and what is said of it before and after. */
async function compare(call: Call, rules: readonly Rule[]): Promise<void> {
  const { server, subject, args } = call
  const isTool = subject !== 'resources/read'
  const say = (method: string, params: string): string =>
    `{"jsonrpc":"2.0","id":$ID,"method":"${method}","params":${params}}`
  const before = await operator.say(
    say('policy/explain', `{"server":"${server}","tool":"${subject}","arguments":${args}}`),
  )
  const params = isTool ? `{"name":"${subject}","arguments":${args}}` : args
  const made = await sessions.get(server)?.say(say(isTool ? 'tools/call' : subject, params))
  const refused = made === undefined ? undefined : refusalOf(made)
  const code = refused?.data.code ?? null
  // What is read two ways, or has no canonical form, is refused before any rule is asked.
  if (before.error !== undefined) return expect(code).toBe(before.error.data.code)
  expect(before.result?.['outcome']).toBe(code === null ? 'sent' : 'refused')
  const steps = (before.result?.['steps'] ?? []) as { step: string; verdict: string; detail: string }[]
  const flaw = steps.find(({ step, verdict }) => step === 'arguments' && verdict === 'refuse')
  const { action, by } = verdictOf(call, rules)
  const isOfTrust = action === 'ask' && typeof by === 'number' && rules[by]?.action === 'allow'
  expect(steps.find(({ step }) => step === 'trust')?.verdict).toBe(isOfTrust ? 'ask' : 'pass')
  // What rules deny whatever else is wrong with it is told as that, save where its envelope is at fault.
  const message = refused?.message ?? ''
  if (flaw !== undefined && (action !== 'deny' || message.includes(flaw.detail)))
    return expect(message).toContain(flaw.detail)
  const rule =
    by === null ? null : `sallyport.yaml ${typeof by === 'string' ? `servers.${by}` : `rules[${by}]`}`
  expect(before.result).toMatchObject({ action, rule })
  expect([null, 'ERR_APPROVAL_UNAVAILABLE', 'ERR_POLICY_DENIED', 'ERR_MESSAGE_AMBIGUOUS']).toContain(code)
  expect(code === null ? 'allow' : code === 'ERR_APPROVAL_UNAVAILABLE' ? 'ask' : 'deny').toBe(action)
  const { records } = await at.client.call('audit/query', { type: 'call.*', limit: 1 })
  const { call: call_id } = Object(records[0]?.body) as { call: CallId }
  const after = await at.client.call('calls/explain', { call_id })
  expect(after).toMatchObject({ server, subject, action, rule, policy: { is_present: true } })
  expectPlace(after.place?.line ?? null, by, rules)
}

/** The line where the rule, or the server's entry, begins. */
function expectPlace(line: number | null, by: Verdict['by'], rules: readonly Rule[]): void {
  if (by === null || line === null) return expect(line).toBe(by)
  const lines = readFileSync(at.config, 'utf8').split('\n')
  const here = lines.slice(line - 1, line + 1).join('')
  if (typeof by === 'string')
    return expect(here).toContain(by.includes('deny') ? '"change"' : `"${by.split('.').at(-1)}"`)
  expect(here).toContain(JSON.stringify(rules[by]?.permission))
  expect(lines.slice(0, line - 1).filter((text) => text.includes('"permission"'))).toHaveLength(by)
}

async function write(rules: readonly Rule[]): Promise<void> {
  await writeFile(at.config, JSON.stringify(configOf({ ...servers, gone }, { rules }), null, 1))
  await at.client.call('daemon/reload', {})
}

test('the line that decides is the line that is named, for any rules and any call', async () => {
  for (const { rules, calls } of fc.sample(anyFile, { numRuns: 25, seed: 3 })) {
    await write(rules)
    for (const call of calls)
      await compare(call, rules).catch((cause: unknown) => {
        throw new Error(`${JSON.stringify(call)} under ${JSON.stringify(rules)}: ${String(cause)}`, {
          cause,
        })
      })
  }
})

test.each(['tools/list', 'ping/pong', 'resources/Read'])(
  '%s is no method that a rule decides',
  async (tool) => {
    await expect(at.client.call('policy/explain', { server: 'open', tool })).rejects.toMatchObject({
      code: 'ERR_TOOL_NOT_FOUND',
    })
  },
)

test('of a subscription of the later era it is said which methods decide it, thing by thing', async () => {
  const asked = at.client.call('policy/explain', { server: 'open', tool: 'subscriptions/listen' })
  await expect(asked).rejects.toMatchObject({
    code: 'ERR_TOOL_NOT_FOUND',
    message: expect.stringMatching(/resources\/subscribe.*tasks\/get/) as string,
  })
})

test('a server that gave up is called by nobody', async () => {
  await write([{ permission: 'mcp:*:*', action: 'allow' }])
  const asked = { server: 'gone', tool: 'echo', arguments: {} }
  const called = () => at.client.call('tools/call', asked)
  for (let n = 0; n < 2; n += 1)
    await expect(called()).rejects.toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
  const after = await at.client.call('policy/explain', asked)
  expect(after.steps[0]).toMatchObject({ step: 'server', verdict: 'refuse' })
  expect(after.outcome).toBe('refused')
})

test('of a tool its trust says what it has earned, and that of its server what decides', async () => {
  const said = async (server: string): Promise<string> => {
    const { steps } = await at.client.call('policy/explain', { server, tool: 'echo' })
    return steps.find(({ step }) => step === 'trust')?.detail ?? ''
  }
  const pattern: Rule = { permission: 'mcp:*:*', action: 'allow' }
  await at.client.call('trust/reset', { server: 'wary', tool: 'echo' })
  await write([pattern])
  const patternWants = 'the server is untrusted, so a rule of a pattern takes a tool that has earned trust'
  expect(await said('wary')).toMatch(
    `${patternWants}; the tool has earned the tier untrusted (0 good calls, `,
  )
  expect(await said('open')).toMatch(
    /^the server is trusted, so the rules alone decide; the tool has earned the tier \w+ \(\d+ good calls?, confidence 1\)$/,
  )
  await write([{ permission: 'mcp:wary:echo', action: 'allow' }, pattern])
  await at.client.call('tools/call', { server: 'wary', tool: 'echo', arguments: {} })
  await eventually(async () => (await said('wary')).includes('(1 good call, '))
  expect(await said('wary')).toMatch(
    /^the server is untrusted, and the rule that names the tool exactly decides; the tool has earned the tier untrusted \(/,
  )
  await write([{ permission: 'mcp:wary:echo', action: 'ask' }, pattern])
  expect(await said('wary')).toMatch(/^the server is untrusted, and the rules decide; /)
})

test('what is said to change a call that nobody was there to allow does, also where the rule that decided allows it', async () => {
  const rules: readonly Rule[] = [{ permission: 'mcp:*:*', action: 'allow' }]
  await write(rules)
  const called = () => at.client.call('tools/call', { server: 'wary', tool: 'echo', arguments: {} })
  await expect(called()).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
  const { records } = await at.client.call('audit/query', { type: 'call.denied', limit: 1 })
  const { call: call_id } = Object(records[0]?.body) as { call: CallId }
  const { change } = await at.client.call('calls/explain', { call_id })
  const [, permission = '', place = ''] =
    /a rule that allows exactly (\S+), before sallyport\.yaml rules\[(\d+)\]$/.exec(change) ?? []
  await write(rules.toSpliced(Number(place), 0, { permission, action: 'allow' }))
  expect((await called()).type).toBe('output')
})
