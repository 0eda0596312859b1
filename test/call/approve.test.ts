// An approval is good for exactly what was asked, for as long as it was given, and for nobody else.
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { type ApprovalHappening, Approvals } from '../../src/call/approve.ts'
import type { ApprovalQuestion } from '../../src/call/ports.ts'
import { makeVisible, pieceOf, summaryOf } from '../../src/call/question.ts'
import { approvalQuestion as question } from '../support/approval-question.ts'

let now = 0
let listeners = 1
let told: ApprovalHappening[] = []
let approvals: Approvals
const never = new AbortController().signal

beforeEach(() => {
  now = 0
  listeners = 1
  told = []
  approvals = new Approvals({
    limits: () => ({ waitMs: 50, ttlMs: 1000 }),
    now: () => now,
    listeners: () => listeners,
    tell: (happening) => told.push(happening),
  })
})

const firstId = (): string => approvals.pending()[0]?.id ?? ''

describe('a question', () => {
  test('is a no at once when nobody listens', async () => {
    listeners = 0
    expect(await approvals.ask(question, { signal: never })).toMatchObject({ granted: false, by: null })
    expect(told).toEqual([])
  })

  test('is a no when nobody answers in time', async () => {
    expect(await approvals.ask(question, { signal: never })).toMatchObject({
      granted: false,
      isTimeout: true,
    })
    expect(approvals.pending()).toEqual([])
    expect(told.map(({ kind }) => kind)).toEqual(['asked', 'settled'])
  })

  test('is a no when the caller takes the call back', async () => {
    const controller = new AbortController()
    const answer = approvals.ask(question, { signal: controller.signal })
    controller.abort()
    expect(await answer).toMatchObject({ granted: false, isTimeout: false })
  })

  test('is a yes for this call only when it is approved once', async () => {
    const answer = approvals.ask(question, { signal: never })
    expect(approvals.approve(firstId(), '0', null)).toBe(true)
    expect(await answer).toMatchObject({ granted: true, by: '0', scope: 'once' })
    expect(await approvals.ask(question, { signal: never })).toMatchObject({ granted: false })
  })

  test('cannot be answered twice', async () => {
    const answer = approvals.ask(question, { signal: never })
    const id = firstId()
    expect(approvals.deny(id, 'not today', '0')).toBe(true)
    expect(approvals.draft(id, 'policy', '0')).toBe(null)
    expect(approvals.approve(id, '0', null)).toBe(false)
    expect(await answer).toMatchObject({ granted: false, reason: 'an operator said no: not today' })
    expect(approvals.standing()).toEqual([])
  })

  test('whose yes ended with what it stood on is a no for who has no permit yet, and is told of as one', async () => {
    const asked = approvals.ask(question, { signal: never })
    const id = firstId()
    approvals.approve(id, '0', null)
    const answer = await asked
    let heard = 0
    approvals.watch(answer, () => (heard += 1))
    const end = { by: '7', reason: 'its trust was reset' }
    approvals.void(({ identity }) => identity.startsWith('other/'), end)
    expect(heard).toBe(0)
    approvals.void(({ identity }) => identity.startsWith('files/'), end)
    expect(heard).toBe(1)
    expect(told.at(-1)).toMatchObject({ kind: 'withdrawn', id, scope: 'once', ...end })
    expect(approvals.isGiven(id)).toBe(true)
    expect(approvals.claim(answer)).toMatchObject({ granted: false, ...end })
  })

  test('that is denied tells the caller why, with nothing invisible in it', async () => {
    const answer = approvals.ask(question, { signal: never })
    approvals.deny(firstId(), 'no\u001b[2J\u202e\nat all', '0')
    const reason = String.raw`an operator said no: no\u001b[2J\u202e\u000aat all`
    expect(await answer).toMatchObject({ reason })
  })
})

describe('an approval for the session', () => {
  const stand = async (scope: 'session' | 'policy'): Promise<void> => {
    const answer = approvals.ask(question, { signal: never })
    const id = firstId()
    approvals.approve(id, '0', approvals.draft(id, scope, '0'))
    await answer
    listeners = 0
  }
  const isGranted = async (change: Partial<ApprovalQuestion>): Promise<boolean> =>
    (await approvals.ask({ ...question, ...change }, { signal: never })).granted

  test('covers the same call of the same session', async () => {
    await stand('session')
    expect(await isGranted({})).toBe(true)
  })

  test.each([
    ['another session', { session: 's-2' }],
    ['another request', { repeatDigest: 'c'.repeat(64) }],
    ['another identity', { identity: 'files/write_file@2#1' }],
    ['another principal', { principal: '1001' }],
    ['trust that was reset since', { trustEpoch: 1 }],
    ['another policy', { policyVersion: 'v2' }],
  ])('does not cover %s', async (_title, change) => {
    await stand('session')
    expect(await isGranted(change)).toBe(false)
  })

  test('covers other sessions when it is given for the policy', async () => {
    await stand('policy')
    expect(await isGranted({ session: 's-2' })).toBe(true)
    expect(await isGranted({ principal: '1001' })).toBe(false)
  })

  test.each(['session', 'policy'] as const)('covers what waits already (%s)', async (scope) => {
    const asked = [{}, {}, { session: 's-2' }, { repeatDigest: 'c'.repeat(64) }].map((change) =>
      approvals.ask({ ...question, ...change }, { signal: never }),
    )
    const id = firstId()
    const drafted = approvals.draft(id, scope, '0')
    approvals.approve(id, '0', drafted)
    if (drafted === null) throw new Error('nothing waits')
    for (const other of [...approvals.coveredBy(drafted), 'a-nobody']) approvals.cover(other)
    const answers = await Promise.all(asked)
    expect(answers.map(({ granted }) => granted)).toEqual([true, true, scope === 'policy', false])
    expect(answers[1]).toMatchObject({ approval: id, scope, by: '0' })
    approvals.withdraw(id, scope, 'a slip', '0')
    expect(told.at(-1)).toMatchObject({ kind: 'withdrawn', id, scope, by: '0' })
    expect(answers.slice(0, 2).map((one) => approvals.claim(one).granted)).toEqual([false, false])
  })

  test('ends with its time', async () => {
    await stand('policy')
    now = 1000
    expect(await isGranted({})).toBe(false)
  })

  test('that a journal told of has no more time than a new one, whatever the wall clock was set to', async () => {
    await stand('policy')
    const [standing] = approvals.standing()
    if (standing === undefined) throw new Error('nothing stands')
    approvals.restore({ ...standing, expiresAt: 1e9 })
    now = 999
    expect(await isGranted({})).toBe(true)
    now = 1000
    expect(await isGranted({})).toBe(false)
  })

  test('ends with what it stood on', async () => {
    await stand('policy')
    expect(approvals.void(({ identity }) => identity.startsWith('files/'))).toHaveLength(1)
    expect(await isGranted({})).toBe(false)
  })
})

describe('what an operator reads', () => {
  test('hides nothing: control, format and look-alike space characters are written out', () => {
    expect(makeVisible('a\u001b[2K\u202eb\u200bc\u00a0d\u{e0041}')).toBe(
      String.raw`a\u001b[2K\u202eb\u200bc\u00a0d\u{e0041}`,
    )
    const variants = 'a\ufe0f\u{e0148}\u{e0155}\u034f\u3164' // of no character, one after another they spell a text of their own
    expect(makeVisible(variants)).toBe(String.raw`a\ufe0f\u{e0148}\u{e0155}\u034f\u3164`)
    expect(makeVisible('a\u2800b\u2801')).toBe('a\\u2800b\u2801') // Braille without a dot is as blank as a space
    expect(makeVisible('a\u{1d159}\u{16fe4}b')).toBe(String.raw`a\u{1d159}\u{16fe4}b`) // drawn as nothing
    expect(makeVisible('n\u0336o\u20dd')).toBe(String.raw`n\u0336o\u20dd`) // drawn over it
    expect(makeVisible('e\u0301\u0302\u0303\u0304')).toBe('e\u0301\u0302' + String.raw`\u0303\u0304`)
    expect(makeVisible(`ก${'\u0e48'.repeat(6)}`)).toBe(`ก${'\u0e48'.repeat(5)}${String.raw`\u0e48`}`)
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(makeVisible(text)).not.toMatch(/(?! )[\p{C}\p{Z}\p{DI}]/u)
      }),
    )
  })

  test.each(['ကို့', 'שָׁלוֹם', 'مُحَمَّدٌ', 'اللّٰهُ', 'ที่นี่', 'Tiếng Việt', 'नमस्ते', 'བོད་སྐད་', '漢字 ✓ 👍🏽 é'])(
    'leaves what people write as they write it: %s',
    (text) => {
      for (const form of ['NFC', 'NFD']) expect(makeVisible(text.normalize(form))).toBe(text.normalize(form))
    },
  )

  test.each([
    '{"command":"rm -rf /","force":true}',
    `{"command":"rm -rf / --no-preserve-root","why":"${'z'.repeat(31)}"}`,
    `{"command":"rm -rf /","why":"${'z'.repeat(300)}"}`,
  ])('is in its summary arguments for a half, however long the name of a tool is (%#)', (text) => {
    for (const identity of ['files/write_file@1#1', `${'s'.repeat(60)}/${'t'.repeat(128)}@1.2.3#4`]) {
      const summary = summaryOf(identity, text)
      const [name = '', shown = ''] = summary.split(/ (?=\{)/)
      expect(summary.length).toBe(Math.min(200, `${identity} ${text}`.length))
      expect(shown.length).toBeGreaterThanOrEqual(Math.min(100, text.length))
      expect(text.startsWith(shown.replace(/…$/, ''))).toBe(true)
      const [start = '', end = ''] = name.split('…')
      expect(identity.startsWith(start) && identity.endsWith(end)).toBe(true)
      expect(name).toMatch(/@[\d.]+#\d$/)
    }
  })

  test('is at most 200 characters in the summary, a beginning in the list, and whole on request', async () => {
    const text = `{"content":"${'x'.repeat(499)}😀${'y\u200b'.repeat(300_000)}"}`
    const answer = approvals.ask({ ...question, text: () => text }, { signal: never })
    const [pending] = approvals.pending()
    expect(pending?.summary).toHaveLength(200)
    expect(pending?.text).toBe(text.slice(0, 513))
    expect(pending?.length).toBe(text.length)
    let whole = pending?.text ?? ''
    for (let next = pending?.next ?? null; next !== null;) {
      const piece = approvals.text(firstId(), next)
      expect(piece?.text.length).toBeLessThan(2_000_000)
      whole += piece?.text
      next = piece?.next ?? null
    }
    expect(whole).toBe(makeVisible(text))
    expect(pieceOf('short', 99)).toEqual({ text: '', next: null })
    approvals.deny(firstId(), '', '0')
    await answer
    expect(approvals.text('a-none', 0)).toBeNull()
  })

  test('is as much as can be kept: what one host asks beyond is a no at once, and no other host’s', async () => {
    const asking = new AbortController()
    const ask = (more: Partial<ApprovalQuestion>) =>
      approvals.ask({ ...question, ...more }, { signal: asking.signal })
    const waiting = Array.from({ length: 1024 }, () => ask({}))
    expect(await ask({})).toMatchObject({
      granted: false,
      by: null,
      reason: expect.stringContaining('uid 1000'),
    })
    const long = 'x'.repeat(9 * 1024 * 1024)
    waiting.push(ask({ principal: '1001', text: () => long }), ask({ principal: '1001' }))
    expect(await ask({ principal: '1001', text: () => long })).toMatchObject({ granted: false, by: null })
    expect(approvals.pending()).toHaveLength(1026)
    asking.abort()
    await Promise.all(waiting)
  })
})
