// An operator who reads slowly still hears of every question that waits, and of the end of each that it was told of.
import { expect, it } from 'vitest'
import { Approvals } from '../../src/call/approve.ts'
import { feedApprovals } from '../../src/daemon/approval-feed.ts'
import { EventLog } from '../../src/daemon/events.ts'
import { pendingView } from '../../src/daemon/governance/approval-events.ts'
import type { CallId } from '../../src/lib/ids.ts'
import type { PendingApproval, SettledApproval } from '../../src/rpc/approvals.ts'
import type { Caller } from '../../src/supervisor/ports.ts'
import { approvalQuestion } from '../support/approval-question.ts'

const operator: Caller = {
  principal: { kind: 'uid', id: '0', attributes: { uid: 0, gid: 0, pid: 1 } },
  role: 'operator',
}
const never = new AbortController().signal

/** Real questions, a ring of three events, and an operator who reads one notification for each `read()`. */
function arrange(): {
  ask: (name: string) => string
  approvals: Approvals
  read: () => Promise<string>
  stop: () => Promise<void>
} {
  const events = new EventLog(3)
  const tell = (type: string, detail: Readonly<Record<string, unknown>>): void =>
    events.emit({ type, server: null, instance: null, principal: '0', detail })
  const approvals = new Approvals({
    limits: () => ({ waitMs: 60_000, ttlMs: 1000 }),
    now: () => 0,
    listeners: () => 1,
    tell(happening) {
      if (happening.kind === 'asked') tell('approval/asked', { ...pendingView(happening.pending) })
      if (happening.kind === 'withdrawn') tell('approval/withdrawn', { ...happening })
      if (happening.kind === 'settled') tell('approval/settled', { id: happening.id, ...happening.answer })
    },
  })
  const names = new Map<string, string>()
  const ended = new AbortController()
  const reads: (() => void)[] = []
  const waits: ((line: string) => void)[] = []
  const notify = (method: string, params: unknown): Promise<void> => {
    const { id } = params as PendingApproval
    const { granted, scope } = params as SettledApproval
    const end = method === 'approvals/settled' ? ` ${granted}${scope === null ? '' : ` ${scope}`}` : ''
    waits.shift()?.(`${method} ${names.get(id)}${end}`)
    return new Promise((resolve) => reads.push(resolve))
  }
  const stream = { signal: ended.signal, notify }
  const start = { seq: 0, known: [] }
  const feeding = feedApprovals(
    { events, pending: () => approvals.pending().map(pendingView) },
    start,
    operator,
    stream,
  )
  return {
    ask(name) {
      const digest = name.padEnd(64, '0')
      const digests = { argumentsDigest: digest, bytesDigest: digest, repeatDigest: digest }
      const question = { ...approvalQuestion, call: `c-${name}` as CallId, ...digests }
      void approvals.ask(question, { signal: never })
      const id = approvals.pending().at(-1)?.id ?? ''
      names.set(id, name)
      return id
    },
    approvals,
    read() {
      const { promise, resolve } = Promise.withResolvers<string>()
      waits.push(resolve)
      reads.shift()?.()
      return promise
    },
    async stop() {
      ended.abort()
      for (const resolve of reads) resolve()
      await feeding
    },
  }
}

it('an operator who missed events is told what waits now and what is over, each once', async () => {
  const { ask, approvals, read, stop } = arrange()
  const first = read()
  const known = ask('known')
  const stays = ask('stays')
  expect(await first).toBe('approvals/asked known')
  expect(await read()).toBe('approvals/asked stays')

  // While the second is being read: the ring holds three events, and six happen.
  approvals.deny(known, 'no', '0')
  const brief = ask('brief')
  approvals.deny(brief, 'no', '0')
  const missed = ask('missed')
  ask('seen')
  ask('seen too')

  expect(await read()).toBe('approvals/settled known null')
  expect(await read()).toBe('approvals/asked missed')
  expect(await read()).toBe('approvals/asked seen')
  expect(await read()).toBe('approvals/asked seen too')
  const next = read()
  approvals.approve(missed, '0', null)
  expect(await next).toBe('approvals/settled missed true once')
  const last = read()
  approvals.deny(stays, 'no', '0')
  expect(await last).toBe('approvals/settled stays false')
  await stop()
})

it('a yes that is taken back is told of as such, and the last word on it', async () => {
  const { ask, approvals, read, stop } = arrange()
  const first = read()
  const id = ask('slip')
  expect(await first).toBe('approvals/asked slip')
  approvals.approve(id, '0', null)
  expect(await read()).toBe('approvals/settled slip true once')
  approvals.withdraw(id, 'once', 'a slip', '0')
  expect(await read()).toBe('approvals/settled slip false once')
  const other = ask('reset')
  expect(await read()).toBe('approvals/asked reset')
  approvals.approve(other, '0', null)
  expect(await read()).toBe('approvals/settled reset true once')
  approvals.void(() => true, { by: '0', reason: 'an operator reset the trust of it' })
  expect(await read()).toBe('approvals/settled reset false once')
  await stop()
})
