// What is said of a tool that a server does not list any more.
import { expect, test } from 'vitest'
import type { AcceptedSurface, AcceptedTool } from '../../src/call/declaration.ts'
import { Standings } from '../../src/call/standings.ts'

test.each([
  [true, 'any more among the tools that are looked at; raise tools.per_server, or see sallyport tools files'],
  [false, 'any more; see sallyport tools files'],
])('a tool that is gone is told with the bound only where that may be why: %s', (isFull, words) => {
  const is = { serverVersion: '1', codeDigest: 'c', restDigest: 'r' }
  const tools = new Map([['read', { surfaceDigest: 's' } as AcceptedTool]])
  const accepted = { ...is, server: 'files', tools } as unknown as AcceptedSurface
  const change = { undeclared: [], changed: [], missing: ['read'], isRestChanged: false }
  const live = { ...is, change, digests: new Map([['write', 'w']]), isFull }
  expect(new Standings().of(accepted, live, 'tool', 'read')).toEqual({
    state: 'unknown',
    reason: `files does not list read ${words}`,
  })
})
