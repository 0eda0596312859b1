// What is judged of results is judged in a short turn, and told in few words: servers write both what they answer and what they say of it.
import { expect, test } from 'vitest'
import { draftDeclaration } from '../../../src/call/declaration.ts'
import { unlikeDeclared } from '../../../src/daemon/governance/off-schema.ts'
import type { Outcome } from '../../../src/schema/governor.ts'
import { processorMs } from '../../support/processor-time.ts'

const identity = 'files/read@1#2'
const admission = { server: 'files', kind: 'tool', subject: 'read', identity } as const

function judged(
  outputSchema: object,
  structuredContent: unknown,
  more: Partial<Outcome> = {},
  of = admission,
) {
  const declaration = draftDeclaration({ name: 'read', outputSchema })
  const tools = new Map([['read', { declaration, surfaceDigest: 'd' }]])
  const accepted = { declarationVersion: 2, tools } as never
  const bytes = JSON.stringify({ content: [], structuredContent })
  const outcome: Outcome = { kind: 'result', durationMs: 1, bytes, detail: null, ...more }
  return unlikeDeclared({ accepted: () => accepted }, of, outcome)
}

const total = { type: 'object', required: ['total'] }

test('what a task’s state, another acceptance or a failure says is not judged', () => {
  expect(judged(total, {})).toEqual({ offSchema: expect.stringContaining('"total" is missing') as string })
  expect(judged(total, {}, { isState: true })).toBe(null)
  expect(judged(total, {}, { kind: 'tool-error' })).toBe(null)
  expect(judged(total, {}, {}, { ...admission, identity: 'files/read@1#1' } as never)).toBe(null)
})

test('it is told in few words, whatever a server calls its members', () => {
  const { offSchema = '' } =
    judged({ type: 'object', additionalProperties: false }, { ['k'.repeat(100_000)]: 1 }) ?? {}
  expect(offSchema.length).toBeLessThanOrEqual(300)
  expect(offSchema).toMatch(/^structuredContent\/k+/)
})

test('long names of what is missing, many times over, hold nobody up', () => {
  const name = 'n'.repeat(16_000)
  const alternatives = Array.from({ length: 15 }, (_, n) => ({ required: [name + n] }))
  const schema = {
    type: 'object',
    properties: { a: { type: 'array', items: { anyOf: [...alternatives, {}] } } },
  }
  const a = Array.from({ length: 20_000 }, () => ({}))
  expect(processorMs(() => judged(schema, { a }))).toBeLessThan(200)
})
