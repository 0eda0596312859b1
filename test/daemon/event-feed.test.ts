// Subscribers are told of each event that is theirs once and in order, and of many at once in few writes.
import { expect, test } from 'vitest'
import { EventLog } from '../../src/daemon/events.ts'
import { hostMethods, type MethodPorts } from '../../src/daemon/methods/host-methods.ts'
import type { MethodCall } from '../../src/daemon/methods/methods.ts'
import type { Notifier } from '../../src/rpc/answering.ts'
import type { SallyportEvent } from '../../src/rpc/protocol.ts'
import type { Caller } from '../../src/supervisor/ports.ts'
import { eventually } from '../support/eventually.ts'
import { notifierTo } from '../support/notifier.ts'

const host: Caller = {
  principal: { kind: 'uid', id: '1', attributes: { uid: 1, gid: 1, pid: 1 } },
  role: 'host',
}

interface Subscriber extends AsyncDisposable {
  /** What each write to it said */
  readonly writes: readonly string[]
  readonly told: readonly SallyportEvent[]
}

/** Subscribes from the first event on; `read` is how long it takes to read what is written at once. */
async function subscribe(log: EventLog, read = (): Promise<void> => Promise.resolve()): Promise<Subscriber> {
  const ports = { events: log, tools: { table: () => ({}) } } as unknown as MethodPorts
  const [over, writes] = [new AbortController(), [] as string[]]
  const pass = async (lines: string): Promise<void> => {
    writes.push(lines)
    await read()
  }
  const stream = notifierTo(over.signal, pass)
  const tasks: Promise<void>[] = []
  const afterReply = (task: (stream: Notifier) => Promise<void>): unknown => tasks.push(task(stream))
  const call = { caller: host, signal: over.signal, afterReply } as unknown as MethodCall
  await hostMethods(ports)['events/subscribe']({ since: 0 }, call)
  return {
    writes,
    get told() {
      const lines = writes.flatMap((said) => said.trimEnd().split('\n'))
      return lines.map((line) => (JSON.parse(line) as { params: SallyportEvent }).params)
    },
    async [Symbol.asyncDispose]() {
      over.abort(new Error('over'))
      await Promise.allSettled(tasks)
    },
  }
}

const emit = (log: EventLog, detail: Readonly<Record<string, unknown>>, principal: string | null = '1') =>
  log.emit({ type: 'test/event', server: null, instance: null, principal, detail })
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n)
const numbers = ({ told }: Subscriber): readonly unknown[] => told.map(({ detail }) => detail['n'])

test('what happens at once is told in one write, and to each subscriber only what is its own', async () => {
  const log = new EventLog()
  await using one = await subscribe(log)
  await using other = await subscribe(log)
  for (const n of upTo(50)) {
    emit(log, { n })
    if (n % 5 === 0) emit(log, { n }, 'another')
  }
  for (const subscriber of [one, other]) {
    await eventually(() => subscriber.told.length >= 50)
    expect(numbers(subscriber)).toEqual(upTo(50))
    expect(subscriber.writes).toHaveLength(1)
  }
})

test('of long events no more is written at once than a subscriber has room for', async () => {
  const log = new EventLog()
  await using subscriber = await subscribe(log)
  for (const n of upTo(60)) emit(log, { n, text: 'x'.repeat(8000) })
  await eventually(() => subscriber.told.length === 60)
  expect(numbers(subscriber)).toEqual(upTo(60))
  expect(Math.max(...subscriber.writes.map((said) => said.length))).toBeLessThan(65_537)
})

test('who reads slowly is told of all that is still there, in order, and of how many went by', async () => {
  const log = new EventLog(100)
  const [gate, began] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using subscriber = await subscribe(log, () => {
    began.resolve()
    return gate.promise
  })
  emit(log, { n: 0 })
  await began.promise
  for (const n of upTo(300)) emit(log, { n: 1 + n })
  gate.resolve()
  await eventually(() => subscriber.told.length >= 102)
  const [first, lost, ...rest] = subscriber.told
  expect([first?.detail, lost?.type, lost?.detail]).toEqual([{ n: 0 }, 'events/lost', { count: 200 }])
  expect(rest.map(({ detail }) => detail['n'])).toEqual(upTo(100).map((n) => 201 + n))
})
