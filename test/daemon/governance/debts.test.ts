// What has effect already is on record before whatever comes after it, also where a disk takes its time to say no.
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { StrictFact } from '../../../src/call/facts.ts'
import { Ledger } from '../../../src/call/ledger.ts'
import { Debts } from '../../../src/daemon/governance/debts.ts'
import { OwedFile } from '../../../src/daemon/governance/owed-file.ts'
import { redactor } from '../../../src/daemon/redactor.ts'
import { SallyportError } from '../../../src/errors.ts'
import { handled } from '../../support/handled.ts'

const quarantined: StrictFact = {
  type: 'server.quarantined',
  body: { server: 'files', origin: null, owner: null, failure: 'MP-FH-008', reason: 'it reached out' },
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Debts, and what was handed to the journal, which says in its time what became of it. */
const stage = () => {
  const ledger = new Ledger({ provisionalAfter: 10, trustedAfter: 50 })
  const asked: (PromiseWithResolvers<{ seq: number }> & {
    readonly body: Readonly<Record<string, unknown>>
  })[] = []
  const record = (_type: string, body: Readonly<Record<string, unknown>>): Promise<{ seq: number }> => {
    const one = Promise.withResolvers<{ seq: number }>()
    asked.push({ ...one, body })
    return one.promise
  }
  const file = new OwedFile({ paths: [], key: randomBytes(32), redactor, warn: () => undefined })
  return { ledger, asked, debts: new Debts(ledger, { record }, file) }
}

test('what waits for debts to be paid waits for one that is being recorded, and has it tried again where that fails', async () => {
  const { ledger, asked, debts } = stage()
  await using _debts = debts
  ledger.anticipate(quarantined)
  const owing = handled(debts.owe([{ fact: quarantined, evidence: {} }]))
  let isPaid = false
  const paying = debts.pay().then(() => (isPaid = true))
  await turn()
  expect(isPaid).toBe(false)
  asked[0]?.reject(new SallyportError('ERR_JOURNAL', 'not synced'))
  await expect(owing).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
  await turn()
  expect(asked).toHaveLength(2)
  expect(isPaid).toBe(false)
  asked[1]?.resolve({ seq: 1 })
  await paying
  expect(ledger.quarantine('files')).toBeNull() // not ahead of its record any more, which is for the journal to fold
})

test('so it waits for one that comes while it waits for another', async () => {
  const { asked, debts } = stage()
  const owing = [debts.owe([{ fact: quarantined, evidence: {} }])]
  let isPaid = false
  const paying = Promise.all([debts.pay(), debts.pay()]).then(() => (isPaid = true))
  await turn()
  owing.push(debts.owe([{ fact: quarantined, evidence: {} }]))
  asked[0]?.resolve({ seq: 1 })
  await turn()
  expect([asked.length, isPaid]).toEqual([2, false])
  asked[1]?.resolve({ seq: 2 })
  await Promise.all([...owing, paying])
})

test('what could not be recorded is tried again in the order in which it had effect, though each failed by itself', async () => {
  const { asked, debts } = stage()
  await using _debts = debts
  const [first, second] = ['one', 'two'].map((tool): StrictFact => {
    const body = { server: 'files', tool, reason: '', by: '0' }
    return { type: 'trust.reset', body }
  })
  const owing = [first, second].map((fact) =>
    handled(debts.owe(fact === undefined ? [] : [{ fact, evidence: {} }])),
  )
  for (const one of asked) one.reject(new SallyportError('ERR_JOURNAL', 'no room'))
  await Promise.allSettled(owing)
  const paying = debts.pay()
  expect(asked.slice(2).map(({ body }) => body['tool'])).toEqual(['one', 'two'])
  for (const one of asked.slice(2)) one.resolve({ seq: 1 })
  await paying
})
