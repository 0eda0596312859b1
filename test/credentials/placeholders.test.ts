// Placeholders of all sandboxes, found wherever one of them sends any.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { leastNeedle, NeedleIndex } from '../../src/credentials/needle-index.ts'
import { mintPlaceholder } from '../../src/credentials/placeholder.ts'
import { type Holder, Placeholders, rememberedPlaceholders } from '../../src/credentials/placeholders.ts'
import type { Injection } from '../../src/schema/credentials.ts'

const api = { host: 'api.example.com', port: 443 }
const elsewhere = { host: 'evil.example.net', port: 443 }
const all = (): boolean => true
const mint = (prefix = '', length = 40): string => mintPlaceholder({ prefix, length }, [])

const injection: Injection = {
  use: 'one',
  inject: 'egress',
  as: 'ONE',
  hosts: [{ ...api, caFile: null }],
  headers: ['authorization'],
  query: false,
  body: false,
  websocket: false,
  placeholder: { prefix: '', length: 40 },
}

const holding = (placeholders: Placeholders, server = 'files', prefix = '') => {
  const holder: Holder = { server, isOver: false }
  const placeholder = mint(prefix)
  placeholders.add(placeholder, holder, injection)
  return { holder, placeholder }
}

test('any of many texts is found wherever it stands, and nothing else is', () => {
  const index = new NeedleIndex<string>()
  const needles = [22, 23, 26, 40, 41, 93].flatMap((length) =>
    Array.from({ length: 20 }, (_, n) => mint(n % 2 === 0 ? '' : 'ghp_', length + (n % 2) * 4)),
  )
  for (const needle of needles) index.add(needle, needle)
  const around = fc.string({ maxLength: 70, unit: 'grapheme-ascii' })
  fc.assert(
    fc.property(fc.constantFrom(...needles), around, around, (needle, before, after) => {
      expect(index.find(Buffer.from(before + needle + after), all)).toBe(needle)
      expect(index.find(Buffer.from(`${before}~${needle.slice(1)}${after}`), all)).toBeNull()
      expect(index.find(Buffer.from(before + needle.slice(0, -1)), all)).toBeNull()
      expect(index.find(Buffer.from(before + needle + after), (it) => it !== needle)).toBeNull()
    }),
  )
  for (const needle of needles.slice(1)) index.remove(needle)
  expect(needles.map((needle) => index.find(Buffer.from(needle), all))).toEqual([
    needles[0],
    ...needles.slice(1).map(() => null),
  ])
  expect(() => index.add('x'.repeat(leastNeedle - 1), '')).toThrow(RangeError)
})

test.each([
  ['as it is', (it: string) => it],
  ['in base64, at each of the three places', (it: string) => btoa(it)],
  ['in base64 behind one letter', (it: string) => btoa(`x${it}y`)],
  ['in base64 behind two letters', (it: string) => btoa(`u:${it}:`)],
] as const)('in a stream it is found with the chunk that completes it: %s', (_, write) => {
  const placeholders = new Placeholders()
  const { holder, placeholder } = holding(placeholders, 'files', 'ph_')
  const bytes = Buffer.from(`<${'-'.repeat(33)}${write(placeholder)}`.replace(/=+$/, ''))
  for (let cut = 1; cut < bytes.length - 2; cut++) {
    const look = placeholders.watch(holder, elsewhere, all)
    expect(look(bytes.subarray(0, cut))).toBeNull()
    expect(look(bytes.subarray(cut))).toEqual({ credential: 'one', reason: 'other-host' })
  }
  const look = placeholders.watch(holder, elsewhere, all)
  const found = [...bytes].map((byte) => look(Buffer.of(byte))).findIndex((it) => it !== null)
  expect(found).toBeGreaterThan(bytes.length - 4)
})

test.each([
  ['its own, at its host', 'own', api, { credential: 'one', reason: 'other-place' }],
  ['its own, at another', 'own', elsewhere, { credential: 'one', reason: 'other-host' }],
  ['one of its server’s, living', 'sibling', api, { credential: 'one', reason: 'other-sandbox' }],
  ['one of its server’s, ended', 'ended', api, { credential: 'one', reason: 'dead' }],
  ['that at another host', 'ended', elsewhere, { credential: 'one', reason: 'other-host' }],
  ['one of another server', 'other', api, { credential: null, reason: 'other-sandbox' }],
  ['one of another server, ended', 'otherEnded', api, { credential: null, reason: 'other-sandbox' }],
] as const)('what a sandbox sends is judged by whose it is: %s', (_, whose, target, expected) => {
  const placeholders = new Placeholders()
  const own = holding(placeholders)
  const them = {
    own,
    sibling: holding(placeholders),
    ended: holding(placeholders),
    other: holding(placeholders, 'mail'),
    otherEnded: holding(placeholders, 'mail'),
  }
  for (const { holder } of [them.ended, them.otherEnded]) placeholders.end(holder)
  const { placeholder } = them[whose]
  expect(placeholders.watch(own.holder, target, all)(Buffer.from(placeholder))).toEqual(expected)
  expect(placeholders.look(`a.${placeholder.toLowerCase()}.b`, own.holder, target)).toEqual(expected)
  expect(placeholders.look('a.b', own.holder, target)).toBeNull()
})

test('of processes that have ended so many are remembered, and of those that live all', () => {
  const placeholders = new Placeholders()
  const living = holding(placeholders)
  const ended = Array.from({ length: rememberedPlaceholders + 2 }, () => holding(placeholders))
  for (const { holder } of ended) placeholders.end(holder)
  const isFound = ({ placeholder }: { readonly placeholder: string }): boolean =>
    placeholders.look(placeholder, living.holder, api) !== null
  expect([living, ...ended].map(isFound)).toEqual([true, false, false, ...ended.slice(2).map(() => true)])
})
