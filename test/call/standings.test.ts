// What is said of a tool that a server does not list any more, or as nobody can read it.
import { expect, test } from 'vitest'
import type { AcceptedSurface, AcceptedTool } from '../../src/call/declaration.ts'
import type { Live } from '../../src/call/live.ts'
import { Standings } from '../../src/call/standings.ts'

const is = { serverVersion: '1', codeDigest: 'c', saidVersion: null, restDigest: 'r' }
const change = { undeclared: [], changed: [], missing: [], isRestChanged: false }
/** What runs, with nothing listed but what is said. */
const listing = (lists: Partial<Live>): Live => ({
  ...is,
  change,
  digests: new Map(),
  unreadable: new Map(),
  isFull: false,
  isWhole: true,
  ...lists,
})

test.each([
  [true, 'any more among the tools that are looked at; raise tools.per_server, or see sallyport tools files'],
  [false, 'any more; see sallyport tools files'],
])('a tool that is gone is told with the bound only where that may be why: %s', (isFull, words) => {
  const tools = new Map([['read', { surfaceDigest: 's' } as AcceptedTool]])
  const accepted = { ...is, server: 'files', tools } as unknown as AcceptedSurface
  const live = listing({ digests: new Map([['write', 'w']]), isFull, isWhole: !isFull })
  expect(new Standings().of(accepted, live, 'tool', 'read')).toEqual({
    state: 'unknown',
    reason: `files does not list read ${words}`,
  })
})

test.each([
  [true, ' among those that are looked at; raise tools.per_server, or see sallyport tools files'],
  [false, '; see sallyport tools files'],
])('so is one that was never accepted, and is not seen: %s', (isFull, words) => {
  const accepted = { ...is, server: 'files', tools: new Map() } as unknown as AcceptedSurface
  const live = listing({ digests: new Map([['write', 'w']]), isFull, isWhole: !isFull })
  expect(new Standings().of(accepted, live, 'tool', 'read')).toEqual({
    state: 'unknown',
    reason: `files has no tool of that name${words}`,
  })
})

test('a tool that is listed as nobody can look at it is there, and not to be accepted', () => {
  const accepted = { ...is, server: 'files', tools: new Map() } as unknown as AcceptedSurface
  const live = listing({ unreadable: new Map([['long', 'it is too long']]) })
  expect(new Standings().of(accepted, live, 'tool', 'long')).toMatchObject({
    state: 'unaccepted',
    reason: `files lists long as nobody can look at it, so it can't be accepted: it is too long`,
  })
  expect(new Standings().of(accepted, live, 'tool', 'longer')).toMatchObject({ state: 'unknown' })
})
