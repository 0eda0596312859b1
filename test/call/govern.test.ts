// Every way in which a governed call can end before the server sees it, with its code, its record and its failure id.
import { beforeEach, describe, expect, test } from 'vitest'
import { catalogue, SallyportError } from '../../src/errors.ts'
import { Abouts } from '../../src/call/about.ts'
import { draftDeclaration, type ToolDeclaration } from '../../src/call/declaration.ts'
import { govern, recordOutcome } from '../../src/call/govern.ts'
import { Permits } from '../../src/call/permit.ts'
import type { ApprovalAnswer, CallEquipment, GovernPorts, Standing, Told } from '../../src/call/ports.ts'
import type { Admission, Proposal, Turn } from '../../src/schema/governor.ts'
import { type TrustRecord, unknownTool } from '../../src/call/trust.ts'
import type { CallId } from '../../src/lib/ids.ts'

const proposal: Proposal = {
  call: 'c-1' as CallId,
  kind: 'tool',
  server: {
    name: 'files',
    file: 'sallyport.yaml',
    scope: 'user',
    trust: 'trusted',
    tools: { allow: [], deny: [], readOnly: [] },
  },
  subject: 'read_file',
  arguments: { path: '/workspace/a' },
  bytes: '{"name":"read_file","arguments":{"path":"/workspace/a"}}',
  evidence: '{"name":"read_file","arguments":{"path":"/workspace/a"}}',
  principal: '1000',
  peer: { uid: 1000, gid: 1000, pid: 42 },
  session: 's-1',
  lineage: null,
  id: null,
  instance: null,
  obstacle: null,
  comparing: () => null,
  isPart: false,
}
const accepted: Standing = {
  state: 'accepted',
  identity: 'files/read_file@1#1',
  declarationVersion: 1,
  tool: { declaration: draftDeclaration({ name: 'read_file' }), surfaceDigest: '' },
}
const declaring = (declares: Partial<ToolDeclaration>): Standing => ({
  ...accepted,
  tool: { declaration: { ...draftDeclaration({ name: 'read_file' }), ...declares }, surfaceDigest: '' },
})
const granted: ApprovalAnswer = { granted: true, approval: 'a-1', scope: 'once', by: '0' }

interface World {
  standing: Standing
  standingAtBoundary: Standing
  /** Once the intent is on record */
  trustAtBoundary: TrustRecord
  policy: string
  action: 'allow' | 'ask' | 'deny'
  actionAtBoundary: 'allow' | 'ask' | 'deny' | null
  uncontained: string | null
  answer: ApprovalAnswer
  /** What the answer has become by the time at which it is claimed */
  claimed: ApprovalAnswer | null
  invalid: string | null
  hold: string | null
  journal: (type: string) => void
  foreseen: Readonly<Record<string, unknown>> | null
  equip: () => CallEquipment | Promise<CallEquipment>
  /** Waited for before a turn is the call's */
  turn: Promise<void> | null
}
let world: World
let owed: object[]
/** That are taken and not ended */
let turns: number
let records: { type: string; body: Readonly<Record<string, unknown>> }[]

beforeEach(() => {
  owed = []
  records = []
  world = {
    standing: accepted,
    standingAtBoundary: accepted,
    trustAtBoundary: unknownTool,
    policy: 'v1',
    action: 'allow',
    actionAtBoundary: null,
    uncontained: null,
    answer: granted,
    claimed: null,
    invalid: null,
    hold: null,
    journal: () => {},
    foreseen: null,
    equip: () => ({ process: null, secrets: null, end: () => undefined }),
    turn: null,
  }
  turns = 0
})

let permits: Permits

const take = (): Turn => ((turns += 1), { end: () => (turns -= 1) })

/** What the journal would do: the record is there, or it is told why not, when the present turn is over. */
function add(type: string, body: Readonly<Record<string, unknown>>, told: Told): void {
  try {
    world.journal(type)
    records.push({ type, body })
    const seq = records.length
    queueMicrotask(() => told.durable({ seq }))
  } catch (error) {
    queueMicrotask(() => told.failed(error as SallyportError))
  }
}

function ports(): GovernPorts {
  let asked = 0
  permits = new Permits(() => 0)
  const isAtBoundary = (): boolean => records.some(({ type }) => type === 'call.intent')
  return {
    policyVersion: () => world.policy,
    foresee: () => world.foreseen,
    equip: () => world.equip(),
    decide: () => ({
      action: (isAtBoundary() ? world.actionAtBoundary : null) ?? world.action,
      rule: 'rules[0]',
      reason: 'as the test says',
      code: null,
    }),
    registry: {
      standing: () => ((asked += 1), asked === 1 ? world.standing : world.standingAtBoundary),
      trust: () => (isAtBoundary() ? world.trustAtBoundary : unknownTool),
      hold: () => world.hold,
      uncontained: () => world.uncontained,
      invalidArguments: () => world.invalid,
    },
    approver: {
      ask: () => Promise.resolve(world.answer),
      claim: (answer) => world.claimed ?? answer,
      watch: () => undefined,
    },
    permits,
    permitTtlMs: () => 1000,
    recorder: {
      record: async (type, body) => {
        world.journal(type)
        records.push({ type, body })
        return await Promise.resolve({ seq: records.length })
      },
      intent: ({ call, about, argumentsDigest, foreseen, ...own }, told) => {
        const digests = { arguments_digest: argumentsDigest }
        add('call.intent', { call, ...about.target, ...about.basis, ...own, ...digests, ...foreseen }, told)
      },
      outcome: ({ admission: { call, intent }, outcome, used }, told) =>
        add('call.outcome', { call, intent, outcome: outcome.kind, ...used }, told),
    },
    owe: ({ admission: { call, intent }, outcome }) => owed.push({ call, intent, outcome: outcome.kind }),
    abouts: new Abouts(),
    turns: {
      take: () => (world.turn === null ? take() : null),
      wait: (_proposal, _waiting, { given, refused: no }) =>
        void world.turn?.then(
          () => given(take()),
          (error: unknown) => no(SallyportError.from(error)),
        ),
    },
    owed: () => null,
    refuse: () => {},
  }
}

const run = (change: Partial<Proposal> = {}, its = ports()): Promise<Admission> =>
  new Promise((admitted, refused) => {
    const waiting = { signal: new AbortController().signal }
    govern({ ...proposal, ...change }, its, waiting, { admitted, refused })
  })
const outcome = { kind: 'result', durationMs: 1, bytes: '{}', detail: null } as const

test('a call that is allowed has its intent on record before it may be sent', async () => {
  const admission = await run()
  expect(admission).toMatchObject({ identity: 'files/read_file@1#1', intent: 1, approval: null })
  expect(records.map(({ type }) => type)).toEqual(['call.intent'])
  recordOutcome({ admission, outcome, used: null }, ports())
  expect(records.at(-1)).toMatchObject({ type: 'call.outcome', body: { call: 'c-1', intent: 1 } })
})

test('a call that was approved has the approval on record before its intent', async () => {
  world.action = 'ask'
  expect(await run()).toMatchObject({ approval: 'a-1' })
  expect(records.map(({ type }) => type)).toEqual(['approval.used', 'call.intent'])
})

test('calls of one turn take each step together, and one that is refused holds up no other', async () => {
  const seen: string[] = []
  const watched = (name: string): GovernPorts => {
    const all = ports()
    const saw = <T>(step: string, result: T): T => (seen.push(`${step} ${name}`), result)
    return {
      ...all,
      decide: (...asked) =>
        saw('decide', { ...all.decide(...asked), action: name === 'b' ? 'deny' : 'allow' }),
      permitTtlMs: (server) => saw('permit', all.permitTtlMs(server)),
      registry: {
        ...all.registry,
        standing: (...asked) => saw('stand', all.registry.standing(...asked)),
        invalidArguments: (...asked) => saw('digest', all.registry.invalidArguments(...asked)),
      },
    }
  }
  const ends = await Promise.allSettled(['a', 'b', 'c'].map((name) => run({}, watched(name))))
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  const all = (step: string): readonly string[] => ['a', 'b', 'c'].map((name) => `${step} ${name}`)
  expect(seen).toEqual([
    ...['stand', 'digest', 'decide'].flatMap(all),
    ...['permit', 'stand'].flatMap((step) => [`${step} a`, `${step} c`]),
  ])
})

describe('a call that has to wait for its turn', () => {
  test('has no permit and no intent until it comes, and is decided by what holds then', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    world.turn = promise
    const call = run()
    await new Promise(setImmediate)
    expect([records, [...permits.list()], turns]).toEqual([[], [], 0])
    world.turn = null
    world.policy = 'v2'
    resolve()
    const admission = await call
    expect(admission).toMatchObject({ policyVersion: 'v2' })
    expect(turns).toBe(1)
    admission.turn.end()
    expect(turns).toBe(0)
  })

  test('is denied where that holds by then, and its turn is the next one’s', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    world.turn = promise
    const call = run()
    await new Promise(setImmediate)
    Object.assign(world, { policy: 'v2', action: 'deny' })
    resolve()
    await expect(call).rejects.toMatchObject({ code: 'ERR_POLICY_DENIED' })
    expect(turns).toBe(0)
  })

  test('has none while a person is asked, be it that rules ask by then', async () => {
    const [turn, yes] = [Promise.withResolvers<void>(), Promise.withResolvers<ApprovalAnswer>()]
    world.turn = turn.promise
    const its = ports()
    const ask: GovernPorts['approver']['ask'] = (_question, { asked: told }) => (told?.(), yes.promise)
    const asked = { ...its, approver: { ...its.approver, ask } }
    const call = run({}, asked)
    await new Promise(setImmediate)
    world.turn = null
    world.policy = 'v2'
    world.action = 'ask'
    turn.resolve()
    await new Promise(setImmediate)
    expect(turns).toBe(0)
    yes.resolve(granted)
    expect(await call).toMatchObject({ approval: 'a-1' })
    expect(turns).toBe(1)
  })

  test('goes by no yes where its turn does not come: nothing is recorded of that', async () => {
    world.action = 'ask'
    world.turn = Promise.reject(new SallyportError('ERR_BUSY', 'its turn did not come'))
    const claimed: ApprovalAnswer[] = []
    const its = ports()
    const claim = (answer: ApprovalAnswer): ApprovalAnswer => (claimed.push(answer), answer)
    await expect(run({}, { ...its, approver: { ...its.approver, claim } })).rejects.toMatchObject({
      code: 'ERR_BUSY',
    })
    expect(records.map(({ type }) => type)).toEqual(['call.denied'])
    expect(claimed).toEqual([granted])
  })
})

test('a call whose yes is taken back while that is recorded gets no permit', async () => {
  world.action = 'ask'
  world.claimed = { granted: false, by: '0', reason: 'an operator said no', isTimeout: false }
  await expect(run()).rejects.toMatchObject({ code: 'ERR_APPROVAL_DENIED' })
  expect(records.map(({ type }) => type)).toEqual(['approval.used', 'call.denied'])
})

describe('when other settings come to hold', () => {
  const then = (type: string, change: () => void): void => {
    world.journal = (recorded) => void (recorded === type && world.policy === 'v1' && change())
  }

  test('while a person is asked, what they said is for nothing, and the call is decided again', async () => {
    world.action = 'ask'
    then('approval.used', () => Object.assign(world, { policy: 'v2', action: 'deny' }))
    await expect(run()).rejects.toMatchObject({ code: 'ERR_POLICY_DENIED' })
    expect(records.map(({ type }) => type)).toEqual(['approval.used', 'call.denied'])
    expect(records.at(-1)?.body).toMatchObject({ policy: 'v2' })
  })

  test('and ask, too, the call is asked for again, under them', async () => {
    world.action = 'ask'
    then('approval.used', () => (world.policy = 'v2'))
    expect(await run()).toMatchObject({ approval: 'a-1', policyVersion: 'v2' })
    expect(records.map(({ body }) => body['policy'])).toEqual(['v1', 'v2', 'v2'])
  })

  test('between permit and check, nothing is sent', async () => {
    then('call.intent', () => (world.policy = 'v2'))
    await expect(run()).rejects.toMatchObject({ code: 'ERR_PERMIT_REFUSED', details: { check: 'trust' } })
    expect(permits.list()).toEqual([])
  })
})

describe('the secrets of a call', () => {
  test('are read after its intent is on record, which says what it will hold, and before the check', async () => {
    const order: string[] = []
    world.journal = (type) => order.push(type)
    world.foreseen = { credentials: ['github'], exposed: false }
    world.equip = async () => {
      order.push('lease')
      return { process: null, secrets: { names: ['github'], meta: null }, end: () => order.push('end') }
    }
    const admission = await run()
    expect(order).toEqual(['call.intent', 'lease'])
    expect(records[0]?.body).toMatchObject({ credentials: ['github'], exposed: false })
    expect(admission.secrets).toEqual({ names: ['github'], meta: null })
    recordOutcome({ admission, outcome, used: { attribution: 'window', calls: ['c-2'] } }, ports())
    expect(records.at(-1)?.body).toMatchObject({ attribution: 'window', calls: ['c-2'] })
  })

  test('that cannot be read refuse the call, on record', async () => {
    world.equip = () => Promise.reject(new SallyportError('ERR_CREDENTIAL_SOURCE', 'authentication failed'))
    await expect(run()).rejects.toMatchObject({ code: 'ERR_CREDENTIAL_SOURCE' })
    expect(records.map(({ type }) => type)).toEqual(['call.intent', 'call.denied'])
  })

  test('end at once where the check fails', async () => {
    let ended = 0
    world.hold = 'audit'
    world.equip = () => ({ process: null, secrets: null, end: () => (ended += 1) })
    await expect(run()).rejects.toMatchObject({ code: 'ERR_PERMIT_REFUSED' })
    expect(ended).toBe(1)
  })
})

test('a call whose question ended since more was accepted is told so, and to call again', async () => {
  const answer: ApprovalAnswer = { granted: false, by: null, reason: 'it has changed', isTimeout: false }
  const anew: Standing = { ...accepted, identity: 'files/read_file@1#2' }
  world = { ...world, action: 'ask', answer, standingAtBoundary: anew }
  await expect(run()).rejects.toMatchObject({
    code: 'ERR_APPROVAL_UNAVAILABLE',
    message:
      'files read_file was not called: it has changed: it was accepted anew, as files/read_file@1#2, while a yes to files/read_file@1#1 was waited for; call again',
  })
})

const gone = (): never => {
  throw new SallyportError('ERR_SERVER_UNAVAILABLE', 'mcp server files is unavailable')
}
const refused: readonly [string, string, Partial<World>, Partial<Proposal>][] = [
  [
    'the declaration was not accepted',
    'ERR_DECLARATION_MISSING',
    { standing: { state: 'unaccepted', reason: '-' } },
    {},
  ],
  ['the tool changed', 'ERR_DECLARATION_MISMATCH', { standing: { state: 'changed', reason: '-' } }, {}],
  [
    'nobody declared a tool that the server lists',
    'ERR_SURFACE_UNGOVERNED',
    { standing: { state: 'ungoverned', reason: '-' } },
    {},
  ],
  [
    'its server is gone, halted meanwhile for a tool that nobody declared',
    'ERR_SURFACE_UNGOVERNED',
    { equip: gone, standingAtBoundary: { state: 'ungoverned', reason: '-' } },
    {},
  ],
  [
    'its server is gone, halted meanwhile for what it did',
    'ERR_SCOPE_VIOLATION',
    { equip: gone, standingAtBoundary: { state: 'violated', reason: '-' } },
    {},
  ],
  [
    'its server is gone, stopped meanwhile by an operator',
    'ERR_SERVER_UNAVAILABLE',
    { equip: gone, standingAtBoundary: { state: 'unavailable', reason: '-' } },
    {},
  ],
  ['the arguments do not fit the schema', 'ERR_ARGUMENTS_INVALID', { invalid: '/path is missing' }, {}],
  ['the arguments have no canonical form', 'ERR_ARGUMENTS_INVALID', {}, { arguments: { a: '\ud800' } }],
  ['policy denies', 'ERR_POLICY_DENIED', { action: 'deny' }, {}],
  [
    'nobody can be asked',
    'ERR_APPROVAL_UNAVAILABLE',
    { action: 'ask', answer: { granted: false, by: null, reason: '-', isTimeout: false } },
    {},
  ],
  [
    'the tool changed while a person was asked',
    'ERR_DECLARATION_MISMATCH',
    {
      action: 'ask',
      answer: { granted: false, by: null, reason: '-', isTimeout: false },
      standingAtBoundary: { state: 'changed', reason: '-' },
    },
    {},
  ],
  [
    'an operator says no to a tool that has changed',
    'ERR_APPROVAL_DENIED',
    {
      action: 'ask',
      answer: { granted: false, by: '0', reason: '-', isTimeout: false },
      standingAtBoundary: { state: 'changed', reason: '-' },
    },
    {},
  ],
  [
    'an operator says no',
    'ERR_APPROVAL_DENIED',
    { action: 'ask', answer: { granted: false, by: '0', reason: '-', isTimeout: false } },
    {},
  ],
  [
    'no operator answers',
    'ERR_APPROVAL_TIMEOUT',
    { action: 'ask', answer: { granted: false, by: null, reason: '-', isTimeout: true } },
    {},
  ],
  ['a hold stands', 'ERR_PERMIT_REFUSED', { hold: 'audit' }, {}],
  [
    'its trust was reset while it was decided, whatever the rules say of it now',
    'ERR_PERMIT_REFUSED',
    { trustAtBoundary: { ...unknownTool, epoch: 1 } },
    {},
  ],
  [
    'its trust fell while it was decided, and the rules ask by now',
    'ERR_PERMIT_REFUSED',
    { trustAtBoundary: { ...unknownTool, tier: 'provisional' }, actionAtBoundary: 'ask' },
    {},
  ],
  [
    'its trust fell while it was approved, and the rules deny by now',
    'ERR_PERMIT_REFUSED',
    { action: 'ask', trustAtBoundary: { ...unknownTool, tier: 'provisional' }, actionAtBoundary: 'deny' },
    {},
  ],
  [
    'the sandbox does not contain what it declares',
    'ERR_PERMIT_REFUSED',
    { uncontained: '/data is not mounted' },
    {},
  ],
  [
    'its tool declares another class than the permit was issued for',
    'ERR_PERMIT_REFUSED',
    { standingAtBoundary: declaring({ sideEffects: ['read', 'write', 'network', 'secret-access'] }) },
    {},
  ],
  [
    'its tool declares another scope than the permit was issued for',
    'ERR_PERMIT_REFUSED',
    { standingAtBoundary: declaring({ resourceScopes: ['/workspace'] }) },
    {},
  ],
  [
    'the tool changed while it was decided',
    'ERR_PERMIT_REFUSED',
    { standingAtBoundary: { state: 'changed', reason: '-' } },
    {},
  ],
]

test('a call whose tool changed while it was decided is told so, and what mends it', async () => {
  const reason = 'files lists read_file otherwise than when it was accepted; see sallyport accept files'
  world.standingAtBoundary = { state: 'changed', reason }
  await expect(run()).rejects.toMatchObject({
    code: 'ERR_PERMIT_REFUSED',
    message: `the permit for files/read_file@1#1 was refused at the boundary: identity: ${reason}; nothing was sent`,
  })
})

test('nobody is asked about a call that a hold stands on', async () => {
  Object.assign(world, { action: 'ask', answer: granted, hold: 'audit' })
  await expect(run()).rejects.toMatchObject({
    code: 'ERR_PERMIT_REFUSED',
    message:
      'nobody was asked about files/read_file@1#1: checkpoint: the hold audit stands on it, which an operator ends with sallyport release audit; nothing was sent',
  })
  expect(records.map(({ type, body }) => [type, body['check']])).toEqual([['call.denied', 'checkpoint']])
})

describe('nothing is sent when', () => {
  test.each(refused)('%s: %s', async (_title, code, change, proposed) => {
    Object.assign(world, change)
    await expect(run(proposed)).rejects.toMatchObject({ code })
    expect(records.at(-1)).toMatchObject({ type: 'call.denied', body: { call: 'c-1', code } })
    expect(records.at(-1)?.body).toMatchObject({ failure: catalogue[code as keyof typeof catalogue].failure })
    expect([...permits.list()]).toEqual([])
    expect(turns).toBe(0)
  })

  test.each(['', 'a'])(
    'a key of the arguments is long, and the reason names it as %j and so on',
    async (first) => {
      world.invalid = `arguments/${first}${'😀'.repeat(1_000_000)}${first}: got number, expected string`
      const { message } = (await run().catch((error: unknown) => error)) as Error
      expect(message.length).toBeLessThan(1200)
      expect(message).toMatch(/ was not called: arguments\/a?😀+.*: got number, expected string$/u)
      expect(message.isWellFormed()).toBe(true)
      expect(records.at(-1)).toMatchObject({ type: 'call.denied', body: { reason: message } })
    },
  )

  test.each(['call.intent', 'approval.used'])('%s cannot be recorded', async (type) => {
    world.action = 'ask'
    world.journal = (written) => {
      if (written === type) throw new SallyportError('ERR_JOURNAL', 'the disk is full')
    }
    await expect(run()).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
    expect(records.filter((record) => record.type === type)).toEqual([])
    expect([...permits.list()]).toEqual([])
    expect(owed).toEqual([])
  })

  test.each([
    ['its refusal', { hold: 'held' }, 'call.denied', 'ERR_JOURNAL'],
    ['nothing', { hold: 'held' }, null, 'ERR_PERMIT_REFUSED'],
  ])(
    'once its intent is on record, and %s cannot be: its end is owed',
    async (_title, change, unwritten, code) => {
      Object.assign(world, change)
      world.journal = (written) => {
        if (written === unwritten) throw new SallyportError('ERR_JOURNAL', 'the disk is full')
      }
      await expect(run()).rejects.toMatchObject({ code })
      expect(owed).toEqual(unwritten === null ? [] : [{ call: 'c-1', intent: 1, outcome: 'cancelled' }])
    },
  )
})
