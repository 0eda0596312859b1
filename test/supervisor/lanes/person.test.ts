// What is kept of a question until it is answered: its words, and not the line that they stood in.
import { expect, test } from 'vitest'
import { questionOf } from '../../../src/supervisor/lanes/person.ts'
import type { ServerRequest } from '../../../src/supervisor/lanes/conversation.ts'
import type { Wire } from '../../../src/supervisor/lanes/wire.ts'
import { readEnvelope } from '../../../src/supervisor/message/envelope.ts'
import { living } from '../../support/collect.ts'
import { serverSettings } from '../../support/server-settings.ts'

test('of a question that the host has its words are kept, and not the line that they stood in', () => {
  const wire = { server: serverSettings('asks.mjs'), note: () => undefined } as unknown as Wire
  const asked: ServerRequest[] = []
  const before = living()
  for (let n = 0; n < 20; n++) {
    const long = 'x'.repeat(1024 * 1024)
    const line = `{"jsonrpc":"2.0","id":${n},"method":"elicitation/create","params":{"message":"What is number ${n}?"},"more":"${long}"}`
    const said = readEnvelope(line, 0, line.length)
    if (said.kind === 'request') asked.push(questionOf(wire, said, {}))
  }
  for (const { inTime } of asked) inTime?.()
  expect(living() - before).toBeLessThan(4 * 1024 * 1024)
  expect(asked.at(-1)?.question).toBe('{"message":"What is number 19?"}')
})
