// Arguments and schemas that are written to stall the daemon, or to be read one way by policy and another by the server.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { attached } from '../support/attached.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import type { TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { RawCaller, type RawReply, refusalOf } from '../support/raw-caller.ts'
import { watching, yes } from '../support/watching.ts'
import { witness, type Witness } from '../support/witness.ts'

const stars = `/${'a*'.repeat(40)}b`
const rules = [
  { permission: 'mcp:json:echo', action: 'deny', where: { '/path': '/secret/**' } },
  { permission: 'mcp:globs:echo', action: 'deny', where: { '/path': stars } },
  { permission: 'mcp:globs:echo', action: 'deny', where: { '/path': `/**${'a**'.repeat(40)}b` } },
  { permission: 'mcp:asked:*', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]

let seen: Witness
let at: TestDaemon
let host: Client
beforeAll(async () => {
  seen = await witness()
  at = await daemon(
    configOf(
      {
        hostile: fixture('hostile-schemas', { output: { line_bytes: 10_485_760 } }),
        spelt: fixture('spelt'),
        plain: seen.entry('plain'),
        json: seen.entry('json'),
        globs: seen.entry('globs'),
        asked: seen.entry('asked'),
      },
      { rules },
    ),
  )
  host = await at.connect('host')
  for (const server of ['hostile', 'plain', 'json', 'globs']) await host.call('servers/start', { server })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
  await seen[Symbol.asyncDispose]()
})

/** Between an answer and the next call: without it, they take the processor from the work that they are made beside */
const paceMs = 5

/** How many calls of another server were answered between the beginning and the end of the work. */
async function answeredDuring(work: () => Promise<unknown>): Promise<number> {
  const over = new AbortController()
  let answered = 0
  const others = async (): Promise<void> => {
    do {
      await host.call('tools/call', { server: 'plain', tool: 'echo', arguments: { text: 'beside' } })
      answered += 1
      await delay(paceMs)
    } while (!over.signal.aborted)
  }
  await Promise.all([work().finally(() => over.abort()), others()])
  return answered
}

describe('a hostile schema', () => {
  const as = 'a'.repeat(60)
  const many = Array.from({ length: 60_000 }, (_, n) => ({ n }))
  test.each<[string, Record<string, unknown>, string]>([
    ['redos', { text: `${as}!` }, 'took more than 500 ms of processor time'],
    ['redos-keys', { [`${as}!`]: 'x' }, 'took more than 500 ms of processor time'],
    ['url', {}, 'got "http://127.0.0.1:1/schema.json", expected a part of the schema itself'],
    ['file', {}, 'got "file:///etc/passwd", expected a part of the schema itself'],
    ['loop', {}, 'cannot be used: its references lead round in a circle'],
    ['dynamic-loop', {}, 'cannot be used: its references lead round in a circle'],
    ['exponential', { text: 'x' }, "judging them by the tool's schema"],
    ['quadratic', { items: [...many, { n: 0 }] }, 'expected no item twice'],
    ['enum', { text: 'none' }, 'expected one of'],
    ['proto', { constructor: 1 }, 'constructor'],
    ['proto', JSON.parse('{"__proto__":{"constructor":1}}') as Record<string, unknown>, '__proto__'],
  ])('%s is refused with a reason, and the others are served meanwhile', async (tool, args, reason) => {
    for (const turn of ['first', 'again']) {
      const made = host.call('tools/call', { server: 'hostile', tool, arguments: args })
      const answered = await answeredDuring(() => made.catch(() => undefined))
      if (turn === 'first' && reason.startsWith('took more')) expect(answered).toBeGreaterThan(3)
      await expect(made).rejects.toMatchObject({
        code: 'ERR_ARGUMENTS_INVALID',
        exitStatus: 7,
        message: expect.stringContaining(reason),
      })
    }
  })

  test.each([
    ['deep', 'it is nested deeper than 128 levels'],
    ['long', 'it is longer than 1572864 characters'],
    ['half', 'it holds half of a surrogate pair'],
  ])('that is %s makes no tool at all, and is said to be why', async (tool, why) => {
    await expect(host.call('tools/call', { server: 'hostile', tool })).rejects.toMatchObject({
      code: 'ERR_DECLARATION_MISSING',
      message: expect.stringContaining(
        `hostile lists ${tool} as nobody can look at it, so it can't be accepted: ${why}`,
      ),
    })
  })

  test('and so is what is said in two spellings, in a list and to a call', async () => {
    await using session = await attached(at, 'spelt')
    const { result } = await session.ask('tools/list', {})
    const listed = (result as { tools: { name: string }[] }).tools.map(({ name }) => name)
    expect(listed).toEqual(['plain'])
    await host.call('servers/start', { server: 'spelt' })
    const shown = await host.call('tools/list', { server: 'spelt' })
    expect(shown.tools.map(({ tool }) => tool)).toEqual(['plain'])
    for (const tool of ['named', 'described', 'schema', 'hints', 'below']) {
      const refusal = {
        code: 'ERR_DECLARATION_MISSING',
        message: expect.stringMatching(
          `spelt lists ${tool} as nobody can look at it.*in two spellings`,
        ) as string,
      }
      await expect(host.call('tools/call', { server: 'spelt', tool }), tool).rejects.toMatchObject(refusal)
      expect(refusalOf(await session.call(tool)), tool).toMatchObject({ data: { code: refusal.code } })
    }
    expect((await session.call('plain')).result).toMatchObject({ content: [{ text: 'called plain' }] })
  })

  test('costs no other tool its judge, and the daemon no more than one thread', async () => {
    const call = (tool: string, args: Record<string, unknown>) =>
      host.call('tools/call', { server: 'hostile', tool, arguments: args })
    await call('formats', { text: as }) // formats are notes
    await call('proto', JSON.parse('{"__proto__":"x"}') as Record<string, unknown>)
    await call('honest', { text: 'abc' })
    const threads = () => readdirSync(`/proc/${at.process.pid}/task`).length
    const before = threads()
    for (let n = 0; n < 3; n += 1) {
      await expect(call('honest', { text: 'ABC' })).rejects.toMatchObject({ code: 'ERR_ARGUMENTS_INVALID' })
      await expect(call('redos', { text: `${as}${n}` })).rejects.toMatchObject({
        code: 'ERR_ARGUMENTS_INVALID',
      })
      await call('honest', { text: 'abc' })
    }
    expect(threads()).toBeLessThanOrEqual(before + 1)
  })
})

test('a lineage that holds half of a surrogate pair is refused wherever it is said, and no record has it', async () => {
  const half = '"lineage":"torn \\ud800"'
  for (const [name, open] of Object.entries(ways)) {
    using way = await open()
    const params =
      name === 'a session'
        ? `{"name":"echo","_meta":{"sallyport/${half.slice(1)}}}`
        : `{"server":"json","tool":"echo",${half}}`
    const refusal = refusalOf(await way.request(params))
    expect(refusal?.data.code, name).toMatch(/^ERR_INVALID_(REQUEST|PARAMS)$/)
    expect(refusal?.message, name).toContain('half of a surrogate pair')
  }
  using operator = await RawCaller.open(join(at.runtimeDir, 'operator/operator.sock'))
  for (const [method, more] of [
    ['servers/hold', ''],
    ['policy/explain', '"server":"json","tool":"echo",'],
  ])
    expect(
      await operator.say(`{"jsonrpc":"2.0","id":$ID,"method":"${method}","params":{${more}${half}}}`),
    ).toMatchObject({ error: { data: { code: 'ERR_INVALID_PARAMS' } } })
  const { records } = await at.client.call('audit/query', { limit: 1000 })
  expect(JSON.stringify(records)).not.toContain('torn ')
})

test('no glob and no value makes a decision slow for others', async () => {
  for (const path of [`/${'a'.repeat(200_000)}`, `/${'a/'.repeat(100_000)}`, '/'.repeat(200_000)]) {
    const made = host.call('tools/call', { server: 'globs', tool: 'echo', arguments: { path } })
    await answeredDuring(() => made.catch(() => undefined))
    await made.catch((error: unknown) => expect(error).toMatchObject({ code: 'ERR_POLICY_DENIED' }))
  }
})

type Says = (args: string) => Promise<RawReply>

interface Way extends Disposable {
  readonly says: Says
  /** A whole request but for its id, to this way's own method */
  readonly request: (params: string, more?: string) => Promise<RawReply>
}

/** Control calls on either socket, and a session: three readers of the same words. */
const ways: Readonly<Record<string, () => Promise<Way>>> = {
  'host.sock': () => control('host/host.sock'),
  'operator.sock': () => control('operator/operator.sock'),
  'a session': async () => {
    const caller = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
    await caller.ask('session/attach', { server: 'json' })
    const clientInfo = { name: 'raw', version: '1' }
    await caller.ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
    const request = (params: string, more = '') =>
      caller.say(`{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":${params}${more}}`)
    return {
      request,
      says: (args) => request(`{"name":"echo","arguments":${args}}`),
      [Symbol.dispose]: () => caller[Symbol.dispose](),
    }
  },
}

async function control(socket: string): Promise<Way> {
  const caller = await RawCaller.open(join(at.runtimeDir, socket))
  const request = (params: string, more = '') =>
    caller.say(`{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":${params}${more}}`)
  return {
    request,
    says: (args) => request(`{"server":"json","tool":"echo","arguments":${args}}`),
    [Symbol.dispose]: () => caller[Symbol.dispose](),
  }
}

const ambiguous = /^ERR_(MESSAGE_AMBIGUOUS|PARSE|INVALID_REQUEST|INVALID_PARAMS)$/
const denied = /^ERR_POLICY_DENIED$/
const invalid = /^ERR_ARGUMENTS_INVALID$/

/** Arguments that a server could read as a call for /secret. */
const twisted: readonly (readonly [what: string, args: string, code: RegExp])[] = [
  ['plainly', '{"path":"/secret/x"}', denied],
  ['with an escaped key', '{"p\\u0061th":"/secret/x"}', denied],
  ['with an escaped value', '{"path":"\\u002fsecret\\/x"}', denied],
  ['twice', '{"path":"/ok","path":"/secret/x"}', ambiguous],
  ['twice, once escaped', '{"path":"/ok","p\\u0061th":"/secret/x"}', ambiguous],
  ['twice, the other way round', '{"p\\u0061th":"/secret/x","path":"/ok"}', ambiguous],
  ['in another case', '{"path":"/ok","Path":"/secret/x"}', ambiguous],
  ['in full width', '{"path":"/ok","ｐａｔｈ":"/secret/x"}', ambiguous],
  ['with a NUL behind the key', '{"path":"/ok","path\\u0000":"/secret/x"}', ambiguous],
  ['with something invisible in the key', '{"path":"/ok","pa\\u200bth":"/secret/x"}', ambiguous],
  ['in another case alone', '{"PATH":"/secret/x"}', ambiguous],
  ['behind a NUL', '{"path":"/ok\\u0000/secret/x"}', denied],
  ['behind dots', '{"path":"/ok/../secret/x"}', denied],
  ['with a doubled slash', '{"path":"//secret//x"}', denied],
  ['with escapes', '{"path":"/%73ecret/x"}', denied],
  ['behind escaped dots', '{"path":"/ok/%2e%2e/secret/x"}', denied],
  ['in look-alikes', '{"path":"/ｓecret/x"}', denied],
  ['from wherever the server is', '{"path":"secret/x"}', denied],
  ['not as a string', '{"path":["/secret/x"]}', denied],
  ['by a prototype', '{"__proto__":{"path":"/secret/x"}}', ambiguous],
  ['by a prototype beside it', '{"path":"/ok","__proto__":{"path":"/secret/x"}}', ambiguous],
  ['with half a character', '{"path":"/secret/\\ud800"}', denied],
  ['with half a character in a key', '{"path":"/ok","\\udc00":1}', invalid],
  ['with a number beyond a double', '{"path":"/ok","n":1e400}', invalid],
  ['twice, deep inside', '{"path":"/ok","a":{"b":[{"c":1,"\\u0063":2}]}}', ambiguous],
  ['with a raw control character', '{"path":"/ok\t"}', ambiguous],
  ['with a comment', '{"path":"/ok"/* */}', ambiguous],
  [
    'as a message of its own, to who ends a line at a carriage return',
    '{"path":"/ok","a":[\r{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","arguments":{"path":"/secret/x"}}}\r]}',
    ambiguous,
  ],
  ['with a trailing comma', '{"path":"/ok",}', ambiguous],
  ['as NaN', '{"path":"/ok","n":NaN}', ambiguous],
]

/** Arguments that everybody reads alike, to the byte. */
const plain = [
  '{"path":"/ok","n":-0}',
  '{"path":"/ok","n":12345678901234567890}',
  '{"path":"/ok","n":1.0,"m":1e2,"tiny":1e-400}',
  '{"path":"/ok","\\u0061\\ud83d\\ude00":"\\u00e9é"}',
  '{ "z" : 1 , "path" :  "/ok", "a" : { } }',
  '{"path":"/ok","ﬁle":1,"FILE":2}',
]

describe.each(Object.entries(ways))('on %s', (_name, open) => {
  // One for all: what is refused ends no connection, and a session of each would be a process of each.
  let way: Way
  beforeAll(async () => {
    way = await open()
  })
  afterAll(() => way[Symbol.dispose]())

  test.each(twisted)('a call for /secret is seen through: %s', async (_what, args, code) => {
    const before = seen.calls('json').length
    expect(refusalOf(await way.says(args))?.data.code).toMatch(code)
    expect(seen.calls('json').length).toBe(before)
  })

  test.each(plain)('what policy read is what the server reads: %s', async (args) => {
    expect(refusalOf(await way.says(args))).toBeUndefined()
    expect(seen.calls('json').at(-1)).toContain(`"arguments":${args}`)
  })

  test.each([
    ['a method twice', '{"name":"echo"}', ',"method":"ping"'],
    ['a method in another case', '{"name":"echo"}', ',"Method":"ping"'],
    ['parameters twice', '{"name":"echo"}', ',"params":{"name":"echo"}'],
    ['parameters twice, once escaped', '{"name":"echo"}', ',"p\\u0061rams":{"name":"echo"}'],
    ['an id twice', '{"name":"echo"}', ',"id":7'],
    ['a name twice', '{"name":"echo","server":"json","tool":"echo","name":"add","tool":"add"}', ''],
    ['a name in another case', '{"name":"echo","server":"json","tool":"echo","Name":"add","Tool":"add"}', ''],
    ['a name with a NUL', '{"name":"echo","server":"json","tool":"echo","name\\u0000":"add"}', ''],
    [
      'arguments twice',
      '{"name":"echo","server":"json","tool":"echo","arguments":{"path":"/ok"},"argument\\u0073":{"path":"/secret/x"}}',
      '',
    ],
    [
      'arguments in another case',
      '{"name":"echo","server":"json","tool":"echo","arguments":{"path":"/ok"},"Arguments":{"path":"/secret/x"}}',
      '',
    ],
  ])('a request that says %s reaches nobody', async (_what, params, more) => {
    const before = seen.calls('json').length
    const { error } = await way.request(params, more)
    expect(error?.data.code).toMatch(ambiguous)
    expect(seen.calls('json').length).toBe(before)
  })
})

test('no schema is evaded by an escaped key that V8 was taught to take for another', async () => {
  using caller = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await using session = await attached(at, 'hostile')
  const ways: readonly ((args: string) => Promise<RawReply>)[] = [
    (args) =>
      caller.say(
        `{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"server":"hostile","tool":"honest","arguments":${args}}}`,
      ),
    (args) =>
      session.say(
        `{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"name":"honest","arguments":${args}}}`,
      ),
  ]
  for (const [n, say] of ways.entries())
    for (const before of [`"first ${n}":1`, `"first ${n}":12345678901234567890`, `"a":1,"first ${n}":[]`]) {
      expect(refusalOf(await say(`{${before},"t\\\\u0":1}`)), before).toBeUndefined()
      expect(refusalOf(await say(`{${before},"t\\u0065xt":"NOT LOWER"}`))?.data.code, before).toMatch(invalid)
    }
})

test('no schema judges a number that a double does not hold as the one beside it, on the socket or in a session', async () => {
  using caller = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await using session = await attached(at, 'hostile')
  const say = (tool: string, n: string): readonly Promise<RawReply>[] => [
    caller.say(
      `{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"server":"hostile","tool":"${tool}","arguments":{"n":${n}}}}`,
    ),
    session.say(
      `{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"name":"${tool}","arguments":{"n":${n}},"_meta":{"big":12345678901234567890}}}`,
    ),
  ]
  for (const n of ['9007199254740993', '4503599627370497.25', '9007199254740992.0000001'])
    for (const reply of say('whole', n))
      expect(refusalOf(await reply), n).toMatchObject({
        data: { code: 'ERR_ARGUMENTS_INVALID' },
        message: expect.stringContaining('the schema would judge another number'),
      })
  for (const n of ['9007199254740992', '9007199254740992.0', '-0', '1e3'])
    for (const reply of say('whole', n)) expect(refusalOf(await reply), n).toBeUndefined()
  for (const reply of say('any', '12345678901234567890')) expect((await reply).error).toBeUndefined()
})

describe('an explanation says what the call gets', () => {
  // It knows no tool of a server that never ran, and says that first.
  beforeAll(() => at.client.call('servers/test', { server: 'asked' }))

  const explained = async (caller: RawCaller, server: string, tool: string, args: string) => {
    const params = `{"server":"${server}","tool":"${tool}","arguments":${args}}`
    const made = `{"jsonrpc":"2.0","id":$ID,"method":"policy/explain","params":${params}}`
    const called = `{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":${params}}`
    return { explanation: await caller.say(made), reply: await caller.say(called) }
  }

  test.each([
    ...twisted.map(([what, args]) => [what, 'json', 'echo', args] as const),
    ...plain.map((args) => [args, 'json', 'echo', args] as const),
    ['a whole number beyond a double', 'hostile', 'whole', '{"n":9007199254740993}'],
    ['a fraction beyond a double', 'hostile', 'whole', '{"n":4503599627370497.25}'],
    ['any number', 'hostile', 'any', '{"n":12345678901234567890}'],
    ['what nobody is there to be asked', 'asked', 'echo', '{"n":1}'],
  ] as const)('%s', async (_what, server, tool, args) => {
    using caller = await RawCaller.open(join(at.runtimeDir, 'operator/operator.sock'))
    const { explanation, reply } = await explained(caller, server, tool, args)
    const { result, error } = explanation
    // What no reader takes for one request is refused to either.
    if (error === undefined) expect(result?.['outcome']).toBe(reply.error === undefined ? 'sent' : 'refused')
    else expect(error.data.code).toBe(reply.error?.data.code)
    const steps = (result?.['steps'] ?? []) as { step: string; verdict: string; detail: string }[]
    const reasons = steps
      .filter(({ step, verdict }) => verdict === 'refuse' && step !== 'approval') // that is told in other words
      .map(({ detail }) => detail)
    const message = reply.error?.message ?? ''
    if (reasons.length > 0) expect(reasons.some((reason) => message.includes(reason))).toBe(true)
  })

  test('where it is asked for, too', async () => {
    using caller = await RawCaller.open(join(at.runtimeDir, 'operator/operator.sock'))
    await using _watch = await watching(at.client, ({ id }) => at.client.call('approvals/deny', { id }))
    const big = await explained(caller, 'asked', 'echo', '{"n":12345678901234567890}')
    const detail = expect.stringContaining('write 12345678901234567000, or pass it as a string')
    expect(big.explanation.result).toMatchObject({
      outcome: 'refused',
      steps: expect.arrayContaining([{ step: 'arguments', verdict: 'refuse', detail }]),
    })
    expect(big.reply.error).toMatchObject({ data: { code: 'ERR_ARGUMENTS_INVALID' }, message: detail })
    const small = await explained(caller, 'asked', 'echo', '{"n":1}')
    expect(small.explanation.result?.['outcome']).toBe('asked')
    expect(small.reply.error?.data.code).toBe('ERR_APPROVAL_DENIED')
    // What stands beside the arguments nobody approves.
    await using session = await attached(at, 'asked')
    const meta = '"_meta":{"big":12345678901234567890}'
    const reply = await session.say(
      `{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"name":"echo","arguments":{"n":1},${meta}}}`,
    )
    expect(refusalOf(reply)?.data.code).toBe('ERR_APPROVAL_DENIED')
  })
})

test('an approval of one number is none of another that a double takes for it', async () => {
  using caller = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  const says = (amount: string) =>
    caller.say(
      `{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"server":"asked","tool":"echo","arguments":{"amount":${amount}}}}`,
    )
  await using _watch = await watching(at.client, yes(at.client, 'policy'))
  expect((await says('9007199254740992')).error).toBeUndefined()
  expect((await says('9007199254740992.0')).error).toBeUndefined()
  for (const amount of ['9007199254740993', '9007199254740992.0000001'])
    expect((await says(amount)).error).toMatchObject({
      data: { code: 'ERR_ARGUMENTS_INVALID' },
      message: expect.stringContaining('pass it as a string'),
    })
  expect(seen.calls('asked')).toHaveLength(2)
})

describe('what a host says at length', () => {
  const long = 'x'.repeat(300_000)
  test.each<[string, (way: Way) => Promise<RawReply>]>([
    ['a tool', (way) => way.request(`{"name":"${long}","server":"json","tool":"${long}"}`)],
    ['a lineage', (way) => way.request(`{"name":"echo","_meta":{"sallyport/lineage":"${long}"}}`)],
    ['a key', (way) => way.says(`{"path":"/ok","\\ud800${long}":1}`)],
    ['a key that folds', (way) => way.says(`{"path":"/ok","path\\u0000${long}":1}`)],
  ])('stands short in answers, events and records: %s', async (_what, ask) => {
    using way = (await ways['a session']?.()) ?? (await control('host/host.sock'))
    const head = async () => (await at.client.call('audit/query', { limit: 1 })).head.seq
    const before = await head()
    expect(refusalOf(await ask(way))?.message.length).toBeLessThan(9000)
    const { records } = await at.client.call('audit/query', { after: before, type: 'call.denied' })
    for (const { body } of records) expect(JSON.stringify(body).length).toBeLessThan(11_000)
  })

  test('makes no event long', async () => {
    using events = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
    await events.ask('events/subscribe', {})
    using way = (await ways['a session']?.()) ?? (await control('host/host.sock'))
    await way.says(`{"path":"/ok","\\ud800${long}":1}`)
    using other = (await ways['a session']?.()) ?? (await control('host/host.sock'))
    await other.request('{}', `,"\\ud800${long}":1`)
    await way.says('{"path":"/secret/last"}')
    await eventually(
      () => events.lines.some((line) => line.includes('"call/denied"')) && events.lines.length > 2,
      5000,
    )
    expect(Math.max(...events.lines.map((line) => line.length))).toBeLessThan(20_000)
  })
})

test('a yes to more than one call is for those of the lineage that was shown', async () => {
  await using watch = await watching(at.client, yes(at.client, 'policy'))
  const call = (lineage?: string): Promise<unknown> =>
    host.call('tools/call', {
      server: 'asked',
      tool: 'echo',
      arguments: { path: 'of a lineage' },
      ...(lineage === undefined ? {} : { lineage }),
    })
  await call('build-1')
  await call('build-1')
  await call('build-2')
  await call()
  await call()
  expect(watch.asked.map(({ text }) => text)).toEqual([
    '{"path":"of a lineage"} and beside it {"_meta":{"sallyport/lineage":"build-1"}}',
    '{"path":"of a lineage"} and beside it {"_meta":{"sallyport/lineage":"build-2"}}',
    '{"path":"of a lineage"}',
  ])
})
