// What a server lists is read within bounds, whatever it lists: more than that is no tool, and takes no time.
import { expect, test } from 'vitest'
import { digestOfTool, readSurface } from '../../../src/daemon/governance/seen.ts'
import { parseOneWay } from '../../../src/lib/one-way.ts'
import { serverSettings } from '../../support/server-settings.ts'

const server = serverSettings('echo.mjs')
const reading = { codeOf: () => 'code', profileOf: () => null }
const read = (tools: Readonly<Record<string, object>>, rest: object | null = {}) =>
  readSurface({ server, tools: new Map(Object.entries(tools)), saidVersion: null, rest }, reading)
const long = (length: number) => ({ description: 'x'.repeat(length), inputSchema: { type: 'object' } })

test('tools are read up to a megabyte, those that come first', () => {
  const tools = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`t${n}`, long(250_000)]))
  const seen = read(tools)
  expect([...seen.digests.keys()]).toEqual(['t0', 't1', 't2', 't3'])
  expect([...seen.tools.keys()]).toEqual(['t0', 't1', 't2', 't3'])
})

test('one that is too long or too deep by itself leaves room for the next', () => {
  let deep: object = {}
  for (let n = 0; n < 100_000; n += 1) deep = { deep }
  expect([...read({ huge: long(5_000_000), deep, small: long(10) }).tools.keys()]).toEqual(['small'])
})

test('what stands beside the tools has a digest of its own, however much it is, and the same for the same', () => {
  for (const length of [10, 2_000_000]) {
    const [prompts, others] = [{ prompts: [long(length)] }, { prompts: [long(length + 1)] }]
    expect(read({}, prompts).rest?.restDigest).toBe(read({}, structuredClone(prompts)).rest?.restDigest)
    expect(read({}, prompts).rest?.restDigest).not.toBe(read({}, others).rest?.restDigest)
  }
  expect(read({}, { a: 1, b: 2 }).rest?.restDigest).toBe(read({}, { b: 2, a: 1 }).rest?.restDigest)
})

test('where the tools alone were asked for, all else has no digest', () => {
  expect(read({}, null).rest).toBe(null)
})

test('what has no canonical form has a digest all the same, and another one when it changes', () => {
  const [half, other] = ['\ud800', '\ud801'].map((description) => read({}, { prompts: [{ description }] }))
  expect(half?.rest?.restDigest).not.toBe(other?.rest?.restDigest)
})

test('a number that no double holds is a part of the digest, and a double in the schema that arguments are judged by', () => {
  const bounded = (maximum: string) =>
    read({ one: parseOneWay(`{"name":"one","inputSchema":{"maximum":${maximum}}}`) as object })
  const [one, next] = [bounded('18446744073709551615'), bounded('18446744073709551616')]
  expect(one.digests.get('one')).not.toBe(next.digests.get('one'))
  expect(one.tools.get('one')?.declaration.parameters).toEqual({ maximum: 2 ** 64 })
})

test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
  'a tool called %s is declared only where the operator declared it',
  (name) => {
    const declared = { ...server, declaration: {} }
    const tools = new Map([[name, { name, inputSchema: { type: 'object' } }]])
    const seen = readSurface({ server: declared, tools, saidVersion: null, rest: null }, reading)
    expect([...seen.digests.keys()]).toEqual([name])
    expect([...seen.tools.keys()]).toEqual([])
  },
)

test('what was accepted is read before all else, however much is listed before it', () => {
  const names = Array.from({ length: 10 }, (_, n) => `t${n}`)
  const tools = Object.fromEntries(names.map((name) => [name, long(250_000)]))
  const last = read({ t9: long(250_000) }).tools
  const before = { tools: last } as unknown as Parameters<typeof readSurface>[2]
  const seen = readSurface(
    { server, tools: new Map(Object.entries(tools)), saidVersion: null, rest: {} },
    reading,
    before,
  )
  expect([...seen.digests.keys()]).toEqual(['t9', 't0', 't1', 't2'])
})

test('a tool is digested once, however often it is compared and shown', () => {
  let reads = 0
  const listed = {
    name: 't',
    get description() {
      reads += 1
      return 'Says it again.'
    },
  }
  const digest = digestOfTool(listed)
  const before = reads
  expect(digestOfTool(listed)).toBe(digest)
  expect(reads).toBe(before)
  expect(digestOfTool({ ...listed, description: 'Says it.' })).not.toBe(digest)
})
