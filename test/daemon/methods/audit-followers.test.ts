// Who follows the journal and does not read holds a small part of it, however much was written meanwhile.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { auditMethods } from '../../../src/daemon/methods/audit-methods.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import type { Notifier } from '../../../src/rpc/answering.ts'
import { governed } from '../../support/governance.ts'

const bytesRead = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

test('a follower that does not read has little read for it, and misses nothing once it does', async () => {
  await using at = await governed({ rules: [], emit: () => undefined })
  const { governance, directory, policy } = at
  const methods = auditMethods({ governance, directory, policy, key: new Uint8Array(32) })
  const tasks: ((stream: Notifier) => Promise<void>)[] = []
  const call = { afterReply: (task: (typeof tasks)[0]) => tasks.push(task) } as unknown as MethodCall
  const { head } = await methods['audit/query']({ follow: true, limit: 1 }, call)
  const text = 'x'.repeat(20_000)
  await Promise.all(Array.from({ length: 600 }, () => governance.recorder.record('test.note', { text })))

  const [reader, first] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const over = new AbortController()
  const told: number[] = []
  const notify = async (_method: string, record: unknown): Promise<void> => {
    first.resolve()
    await reader.promise
    told.push((record as { seq: number }).seq)
    if (told.length === 600) over.abort()
  }
  const before = bytesRead()
  const done = Promise.all(tasks.map((task) => task({ signal: over.signal, notify })))
  await first.promise
  expect(bytesRead() - before).toBeLessThan(2_000_000)
  reader.resolve()
  await done
  expect(told).toEqual(Array.from({ length: 600 }, (_, n) => head.seq + 1 + n))
})
