// The version that a handshake settles on is kept for as long as its session, and nothing else of the answer that named it.
import { expect, test } from 'vitest'
import { versionOf } from '../../../src/supervisor/lanes/answer-parts.ts'
import { readUnambiguous } from '../../../src/supervisor/message/envelope.ts'
import { living } from '../../support/collect.ts'

/** What is kept of a handshake's answer that names that version. */
function keptOf(version: string, more = ''): string | null {
  const line = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":${JSON.stringify(version)},"more":"${more}"}}`
  const said = readUnambiguous(line, 0, line.length)
  return said.kind === 'response' && said.result !== null ? versionOf(line, said.result) : null
}

test('of a handshake its version is kept, and not the line that it stood in', () => {
  const before = living()
  const kept = Array.from({ length: 20 }, (_, n) => keptOf(`2025-06-18, draft ${n}`, 'x'.repeat(500_000)))
  expect(living() - before).toBeLessThan(2 * 1024 * 1024)
  expect(kept.at(-1)).toBe('2025-06-18, draft 19')
})

test('a version that is longer than any is none', () => {
  expect(keptOf('v'.repeat(62))).toBe('v'.repeat(62))
  expect(keptOf('v'.repeat(63))).toBeNull()
})
