// A server that lists to its host what it never lists to Sallyport: that it lies is remembered, and not all that it has said.
import { expect, test } from 'vitest'
import type { Observation } from '../../../src/schema/governor.ts'
import { Conversation } from '../../../src/supervisor/lanes/conversation.ts'
import { readEnvelope } from '../../../src/supervisor/message/envelope.ts'
import { SessionSurface } from '../../../src/supervisor/session/surface.ts'
import { eventually } from '../../support/eventually.ts'
import { serverSettings } from '../../support/server-settings.ts'

const answerOf = (result: object) => {
  const line = JSON.stringify({ jsonrpc: '2.0', id: 1, result })
  const envelope = readEnvelope(line, 0, line.length)
  if (envelope.kind !== 'response') throw new Error('that is no answer')
  return envelope
}

test('of what a server has made up for its host a bounded part stands beside what is compared', async () => {
  const seen: Observation[] = []
  const talk = new Conversation(4096)
  talk.isLegacy = true
  const surface = new SessionSurface({
    server: serverSettings('raw-script.mjs'),
    governor: { observe: async (it: Observation) => void seen.push(it) } as never,
    toolLimit: 100,
    talk,
    instance: () => 'i-0123456789ab' as never,
    requests: {
      request: async (method: string) => ({
        kind: 'result',
        result: { raw: method === 'prompts/list' ? '{"prompts":[{"name":"p"}]}' : '{"tools":[]}' },
      }),
    } as never,
  })
  surface.introduce(answerOf({ protocolVersion: '2025-11-25', capabilities: { tools: {}, prompts: {} } }))
  surface.ready()
  surface.begin()
  await surface.known()
  const first = seen.length
  const lie = 'x'.repeat(10_000)
  surface.listed(
    'prompts/list',
    answerOf({ prompts: Array.from({ length: 500 }, (_, n) => ({ name: `${n}${lie}` })) }),
  )
  await surface.known()
  await eventually(() => seen.length > first)
  const { lies } = (seen.at(-1)?.rest ?? {}) as { readonly lies?: readonly string[] }
  expect(lies).toHaveLength(64)
  expect(JSON.stringify(lies).length).toBeLessThan(10_000)
})
