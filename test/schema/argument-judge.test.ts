// The thread that judges arguments answers every question, works no longer than it may, and keeps no server waiting for another.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { ArgumentJudge } from '../../src/schema/argument-judge.ts'
import type { Question } from '../../src/schema/argument-worker.ts'
import { asUser } from '../support/as-user.ts'
import { isRoot } from '../support/user.ts'

const honest = { type: 'object', properties: { text: { pattern: '^[a-z]+$' } } }
const slow = { type: 'object', properties: { text: { pattern: '^(a+)+$' } } }
const stalling = `${'a'.repeat(50)}!`

/** Of all that end no thread: each has a server and schemas of its own */
const shared = new ArgumentJudge()
afterAll(() => shared[Symbol.asyncDispose]())

const ask = (
  judge: ArgumentJudge,
  digest: string,
  schema: unknown,
  text: unknown,
  { server = 's', acceptance = 1, principal = '0' } = {},
): Promise<string | null> => judge.ask(question(digest, schema, { text }), { server, acceptance, principal })

const question = (digest: string, schema: unknown, value: unknown): Question => ({
  digest,
  schema: JSON.stringify(schema),
  value: JSON.stringify(value),
})

test('one thread answers one question after another', async () => {
  for (let n = 0; n < 5; n += 1) {
    expect(await ask(shared, 'honest', honest, 'abc')).toBeNull()
    expect(await ask(shared, 'honest', honest, 'ABC')).toContain('arguments/text')
  }
})

test('questions that come together are answered in their order, whatever one of them is', async () => {
  await using judge = new ArgumentJudge()
  const answers = await Promise.all([
    ask(judge, 'honest', honest, 'abc'),
    ask(judge, 'slow', slow, stalling),
    ask(judge, 'honest', honest, 'ABC'),
    ask(judge, 'slow', slow, 'b'),
    ask(judge, 'honest', honest, 'abc'),
  ])
  expect(answers).toEqual([
    null,
    expect.stringContaining('took more than 500 ms of processor time; once more, and the tool is refused'),
    expect.stringContaining('arguments/text'),
    expect.stringContaining('arguments/text'),
    null,
  ])
})

test('a schema that was too slow twice is refused for all arguments, until its server is accepted anew', async () => {
  await using judge = new ArgumentJudge()
  expect(await ask(judge, 'slow', slow, stalling)).toContain('once more')
  expect(await ask(judge, 'slow', slow, 'aaa')).toBeNull()
  expect(await ask(judge, 'slow', slow, stalling)).toContain('is refused until sallyport accept s')
  expect(await ask(judge, 'slow', slow, 'aaa')).toContain('it is refused until sallyport accept s')
  expect(await ask(judge, 'slow', slow, 'aaa', { server: 'other' })).toBeNull()
  expect(await ask(judge, 'slow', slow, 'aaa', { acceptance: 2 })).toBeNull()
  expect(await ask(judge, 'slow', slow, stalling, { acceptance: 2 })).toContain('once more')
})

async function orderOf(
  hostile: readonly Partial<{ server: string; principal: string }>[],
  other: Partial<{ server: string; principal: string }>,
): Promise<readonly string[]> {
  await using judge = new ArgumentJudge()
  const order: string[] = []
  const note = (name: string) => () => order.push(name)
  const asked = hostile.map((one, n) =>
    ask(judge, `slow ${n + 1}`, slow, stalling, one).then(note(`hostile ${n + 1}`)),
  )
  const kind = ['1', '2'].map((n) => ask(judge, 'honest', honest, 'abc', other).then(note(`kind ${n}`)))
  await Promise.all([...asked, ...kind])
  return order
}

test('one server’s questions wait for at most one of each other of the same principal', async () => {
  const one = { server: 'hostile' }
  const order = await orderOf([one, one, one], { server: 'kind' })
  expect(order).toEqual(['hostile 1', 'kind 1', 'hostile 2', 'kind 2', 'hostile 3'])
})

test('who has had less of the thread’s time goes before who has had more, however many servers that has', async () => {
  const many = ['a', 'b', 'c'].map((server) => ({ server, principal: '1' }))
  const order = await orderOf(many, { principal: '2' })
  expect(order).toEqual(['hostile 1', 'kind 1', 'kind 2', 'hostile 2', 'hostile 3'])
})

test('a thread that gets no processor is waited for, and its schema is not to blame', async () => {
  const fixture = fileURLToPath(new URL('../fixtures/judge-arguments.ts', import.meta.url))
  const child = spawn(process.execPath, [fixture], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe('asked')
  child.kill('SIGSTOP')
  await setTimeout(1500) // three times the limit, in which nothing of the process works
  child.kill('SIGCONT')
  expect((await lines.next()).value).toBe('null')
  await ended
})

test('where the machine makes no thread, arguments are not judged and nothing ends; once it does, they are', async () => {
  const fixture = 'fixtures/judge-without-thread.ts'
  const path = fileURLToPath(new URL(`../${fixture}`, import.meta.url))
  const said = isRoot ? await asUser(fixture) : (await promisify(execFile)(process.execPath, [path])).stdout
  expect(said.trim().split('\n')).toEqual([
    expect.stringMatching(
      /^nothing can judge them .*EAGAIN; stop what uses up descriptors, memory, processes/,
    ),
    'null',
  ])
})

test('one server’s many schemas take no memory that another one’s are judged in', async () => {
  await using judge = new ArgumentJudge()
  const names = Array.from({ length: 1500 }, (_, n) => `p${n}`)
  const member = (name: string): object => ({ pattern: name, maxLength: 9, minLength: 1, enum: ['x', name] })
  const schema = { properties: Object.fromEntries(names.map((name) => [name, member(name)])) }
  // Were all of them kept, some 25 would fill it.
  for (let n = 0; n < 40; n += 1) {
    expect(await ask(judge, `hostile ${n}`, { ...schema, n }, 'abc', { server: 'hostile' })).toBeNull()
    expect(await ask(judge, 'honest', honest, 'abc')).toBeNull()
  }
})

test('long arguments have the room that they need, and are held against no schema; what fills it with little is', async () => {
  await using judge = new ArgumentJudge()
  // No more than a machine judges in time whose pages are dear to touch
  const letters = 'ж'.repeat(5 * 1024 * 1024)
  const begins = { properties: { text: { items: { pattern: '^ж' } } } }
  expect(await ask(judge, 'begins', begins, [letters, letters])).toBeNull()
  const tooLong = question('begins', begins, { text: Array(14).fill(letters) })
  for (const _again of [1, 2, 3])
    expect(await judge.ask(tooLong, { server: 's', acceptance: 1, principal: '0' })).toMatch(
      /too long.*64 Mi characters/,
    )
  for (const _again of [1, 2])
    expect(await ask(judge, 'slow', slow, `${'a'.repeat(2 ** 22)}!`)).toMatch(
      /500 ms.*: they are long, send less/,
    )
  expect(await ask(judge, 'slow', slow, 'aaa')).toBeNull()
  const begin = { properties: { text: { pattern: '^x' } } }
  const filling = Array.from({ length: 1_300_000 }, () => ({}))
  expect(await ask(judge, 'begin', begin, filling)).toContain('once more, and the tool is refused')
  expect(await ask(judge, 'begin', begin, filling)).toContain('is refused until sallyport accept s')
})

test.each(['--max-old-space-size=4096', '--max-semi-space-size=64', '--max-old-space-size-percentage=50'])(
  'its memory is its own, whatever NODE_OPTIONS=%s makes of others',
  async (options) => {
    const fixture = fileURLToPath(new URL('../fixtures/fill-judge.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [fixture], {
      env: { NODE_OPTIONS: options },
    })
    expect(stdout).toContain('once more, and the tool is refused')
  },
)

test('only own members count as there', async () => {
  const required = { type: 'object', required: ['constructor'], not: { required: ['toString'] } }
  expect(await ask(shared, 'required', required, 'x')).toContain('constructor')
  const value = { constructor: 1 }
  expect(
    await shared.ask(question('required', required, value), { server: 's', acceptance: 1, principal: '0' }),
  ).toBeNull()
})

test.each<[string, object, unknown, unknown]>([
  ['$async', { $async: true, type: 'object', required: ['a'] }, { a: 1 }, {}],
  ['$async below', { properties: { a: { $async: true, type: 'string' } } }, { a: 'x' }, { a: 1 }],
  ['nullable without a type', { properties: { a: { nullable: true, enum: ['x'] } } }, { a: 'x' }, { a: 'y' }],
  ['nullable that is no boolean', { nullable: 'no', type: 'object', required: ['a'] }, { a: 1 }, {}],
  ['id', { id: 'https://example.com/x', type: 'object', required: ['a'] }, { a: 1 }, {}],
  [
    'names that are keywords',
    { properties: { id: { type: 'string' }, $async: false } },
    { id: 'x' },
    { $async: 1 },
  ],
  ['values that hold keywords', { enum: [{ id: 'x', $async: true }] }, { id: 'x', $async: true }, {}],
])('%s is a word like any other to the dialect', async (name, schema, fits, doesNot) => {
  const owner = { server: name, acceptance: 1, principal: '0' }
  expect(await shared.ask(question(name, schema, fits), owner)).toBeNull()
  expect(await shared.ask(question(name, schema, doesNot), owner)).toMatch(/^arguments/)
  // What is said too late is said in the next one's turn.
  expect(await ask(shared, 'honest', honest, 'abc', { server: 'other' })).toBeNull()
})

test.each<[string, string, string]>([
  [String.raw`^[\w.\@\-]+$`, 'a.b@c-d', '!'],
  [String.raw`^\-?\d+\%$`, '-3%', '3'],
  [String.raw`^[\p{L}\@]+$`, 'é@', '1'],
  [String.raw`^[\w-.]+$`, 'a-b.c', '!'],
  ['^#{[a-f]+}$', '#{ab}', '#ab'],
  ['^#{.}$', '#{😀}', '#{ab}'],
  [String.raw`^[^\w-]$`, '😀', 'ab'],
  ['^a{,2}]$', 'a{,2}]', 'aa]'],
])('the pattern %s means what whoever wrote it meant', async (pattern, fits, doesNot) => {
  const schema = { type: 'object', properties: { text: { pattern } } }
  const owner = { server: pattern }
  expect(await ask(shared, pattern, schema, fits, owner)).toBeNull()
  expect(await ask(shared, pattern, schema, doesNot, owner)).toContain('must match pattern')
})

test.each([String.raw`^\d+\Z`, '(?i)^a$', '^[z-a]$', String.raw`^\p{Nope}\-$`])(
  'the pattern %s, which means something else to whoever wrote it, or nothing, is refused',
  async (pattern) => {
    const schema = { type: 'object', properties: { text: { pattern } } }
    expect(await ask(shared, pattern, schema, 'a', { server: pattern })).toMatch(
      /^the tool's schema cannot be used: #\/properties\/text\/pattern: got ".*", expected a regular expression \(.+\)$/,
    )
  },
)

test('a schema that leads to itself without end is told as that, and not in the words of the engine', async () => {
  const schema = { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' }
  expect(await ask(shared, 'endless', schema, 'a', { server: 'endless' })).toBe(
    "the tool's schema cannot be used: its references lead round in a circle, or deeper than can be followed",
  )
})

test('a price is a multiple of a cent', async () => {
  const schema = { type: 'object', properties: { text: { multipleOf: 0.01, not: { const: 0 } } } }
  for (const price of [19.99, 0.07, 4.35, 1e21, -0.29])
    expect(await ask(shared, 'prices', schema, price), `${price}`).toBeNull()
  for (const price of [0.005, 19.999, 1e-300])
    expect(await ask(shared, 'prices', schema, price), `${price}`).toContain('expected a multiple of 0.01')
})

test('disposing answers whoever waits', async () => {
  const judge = new ArgumentJudge()
  const first = ask(judge, 'slow', slow, stalling)
  const second = ask(judge, 'honest', honest, 'abc')
  await judge[Symbol.asyncDispose]()
  expect(await second).toBe('Sallyport is stopping')
  expect(await first).toBe('Sallyport is stopping')
  expect(await ask(judge, 'honest', honest, 'abc')).toBe('Sallyport is stopping')
})
