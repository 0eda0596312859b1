// A long request is read and asked about in turns of its own; a short one at once.
import { expect, test } from 'vitest'
import { SallyportError } from '../../../src/errors.ts'
import type { Admission } from '../../../src/schema/governor.ts'
import { Asking } from '../../../src/supervisor/governed/asking.ts'
import { asksOf, heldOf } from '../../../src/supervisor/lanes/held.ts'
import { Patience } from '../../../src/supervisor/lanes/patience.ts'
import type { Held } from '../../../src/supervisor/lanes/wire.ts'
import { readUnambiguous } from '../../../src/supervisor/message/envelope.ts'

const noHost = { toHost: () => undefined, look: () => undefined }

/** A call with such an argument, held; `saw` is told when its arguments are read. */
function heldWith(argument: string, saw: () => void): Held {
  const line = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"${argument}"}}}`
  const request = readUnambiguous(line, 0, line.length)
  if (request.kind !== 'request') throw new Error('it is no request')
  const opened = {
    id: request.id,
    wireId: request.id,
    method: request.method,
    route: 'call',
    line: null,
    declares: null,
    round: 0,
  } as const
  const [ask] = asksOf(request, 'call')
  if (ask === undefined) throw new Error('nothing is asked')
  const watched = {
    ...ask,
    get arguments() {
      saw()
      return ask.arguments
    },
  }
  return heldOf(opened, request, [watched])
}

const refused = async (error: SallyportError): Promise<SallyportError> => error

/** What happens to a call with such an argument, in its order, with the marks of the event loop between. */
async function course(argument: string, { isTakenBack = false } = {}): Promise<readonly string[]> {
  const seen: string[] = []
  const patience = new Patience(null, noHost)
  const over = Promise.withResolvers<void>()
  const asking = new Asking(
    heldWith(argument, () => seen.push('read')),
    patience,
    { confirm: () => null },
    (asked) => {
      expect(asked.arguments).toEqual({ x: argument })
      asking.refused(new SallyportError('ERR_POLICY_DENIED', 'no'))
    },
    (_, refusal) => {
      seen.push(refusal?.code ?? 'admitted')
      over.resolve()
    },
  )
  let isOver = false
  const next = (): void => {
    seen.push('turn')
    if (!isOver) setImmediate(next)
  }
  setImmediate(next)
  asking.start(() => {
    seen.push('obstacle')
    return null
  })
  seen.push('started')
  if (isTakenBack) patience.end(new SallyportError('ERR_CALL_CANCELLED', 'taken back'))
  await over.promise
  isOver = true
  return seen.filter((one, at) => one !== 'turn' || seen[at - 1] !== 'turn')
}

test('a short one is asked about in the turn in which it comes', async () => {
  expect(await course('short')).toEqual(['obstacle', 'started', 'read', 'ERR_POLICY_DENIED'])
})

test('a long one is read in a later turn, and asked about in one after that', async () => {
  const long = 'x'.repeat(300_000)
  expect(await course(long)).toEqual([
    'started',
    'turn',
    'read',
    'turn',
    'obstacle',
    'read',
    'ERR_POLICY_DENIED',
  ])
})

test('one that is taken back meanwhile is asked about no more', async () => {
  const long = 'x'.repeat(300_000)
  expect(await course(long, { isTakenBack: true })).toEqual([
    'started',
    'turn',
    'read',
    'turn',
    'ERR_CALL_CANCELLED',
  ])
})

test('of those that come together it is known what is in the way of each before any is asked about, and one that cannot be asked about is refused', async () => {
  const seen: string[] = []
  const started = ['a', 'b', 'c'].map((name) => {
    const over = Promise.withResolvers<void>()
    const held = heldWith(name, () => undefined)
    const ask = (): void => {
      seen.push(`ask ${name}`)
      if (name === 'b') throw new SallyportError('ERR_INTERNAL', 'no')
      asking.refused(new SallyportError('ERR_POLICY_DENIED', 'no'))
    }
    const decided = (_: Asking, refusal: SallyportError | null): void => {
      seen.push(`${refusal?.code} ${name}`)
      over.resolve()
    }
    const asking = new Asking(held, new Patience(null, noHost), { confirm: () => null }, ask, decided)
    asking.start(() => (seen.push(`meet ${name}`), null))
    return over.promise
  })
  await Promise.all(started)
  expect(seen).toEqual([
    'meet a',
    'meet b',
    'meet c',
    'ask a',
    'ERR_POLICY_DENIED a',
    'ask b',
    'ERR_INTERNAL b',
    'ask c',
    'ERR_POLICY_DENIED c',
  ])
})

test('of a request in parts no part can be refused once all are confirmed, nor keeps what would be recorded of that', async () => {
  const held = heldWith('x', () => undefined)
  const [ask] = held.asks
  if (ask === undefined) throw new Error('nothing is asked')
  const confirmed: Admission[] = []
  const { promise: admissions, resolve } = Promise.withResolvers<readonly Admission[]>()
  const asking = new Asking(
    { ...held, asks: [ask, ask, ask] },
    new Patience(null, noHost),
    { confirm: (admission) => (confirmed.push(admission), null) },
    (_, to) => {
      const refuse = to.admissions.length === 2 ? null : refused
      to.admitted({ process: null, permit: `p-${to.admissions.length}`, refuse } as Admission)
    },
    (asked) => resolve(asked.admissions),
  )
  asking.start(() => null)
  expect(await admissions).toMatchObject([
    { permit: 'p-0', refuse: null },
    { permit: 'p-1', refuse: null },
    { permit: 'p-2', refuse: null },
  ])
  expect(confirmed.map(({ permit }) => permit)).toEqual(['p-0', 'p-1'])
})
