// Which ids are in use: an answer that may still come must not be taken for the answer to another request.
import { expect, test } from 'vitest'
import { Conversation, type HostRequest } from '../../../src/supervisor/lanes/conversation.ts'
import type { MessageId } from '../../../src/supervisor/message/message-id.ts'

const idOf = (number: number): MessageId => ({ raw: `${number}`, key: `n${number}` })

/** A request of that id, which the server has under another where it was sent again. */
const requestOf = (id: MessageId, wireId = id): HostRequest => ({
  id,
  wireId,
  method: 'tools/call',
  route: 'call',
  line: null,
  declares: null,
  round: 0,
})

const again: MessageId = { raw: '"again"', key: 'sagain' }

test.each([
  ['taken back', 'cancelled', (talk: Conversation) => talk.cancel(idOf(7))],
  ['too late', 'late', (talk: Conversation) => talk.expire(again.key)],
] as const)(
  'the id of a request that was sent again and is %s is in use until its answer has come',
  (_, why, end) => {
    const talk = new Conversation()
    const request = requestOf(idOf(7), again)
    talk.open(request)
    expect(end(talk)).toEqual(request)
    expect(talk.isOpen(idOf(7))).toBe(true)
    expect(talk.settle(again.key)).toEqual(why === 'late' ? 'late' : request)
    expect(talk.isOpen(idOf(7))).toBe(false)
    expect(talk.settle(again.key)).toBeNull()
  },
)

test('of very many that nobody waits for the oldest are forgotten, and their ids are free', () => {
  const talk = new Conversation()
  for (let n = 0; n < 1025; n++) {
    talk.open(requestOf(idOf(n), { raw: `"again ${n}"`, key: `sagain ${n}` }))
    talk.cancel(idOf(n))
  }
  expect([0, 1, 1024].map((n) => talk.isOpen(idOf(n)))).toEqual([false, true, true])
  expect(talk.settle('sagain 0')).toBeNull()
})

test('of a process that is gone no answer comes any more, and all ids are free', () => {
  const talk = new Conversation()
  const waits = requestOf(idOf(1))
  for (const request of [waits, requestOf(idOf(2)), requestOf(idOf(3), again)]) talk.open(request)
  talk.cancel(idOf(2))
  talk.expire(again.key)
  expect(talk.giveUp()).toEqual([waits])
  expect([1, 2, 3].map((n) => talk.isOpen(idOf(n)))).toEqual([false, false, false])
})
