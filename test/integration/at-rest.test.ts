// A daemon that waits does nothing: no processor time, no process and no descriptor beside those it has.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { expectAftermath } from '../support/aftermath.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf, descendantsOf } from '../support/leaks.ts'

/** What takes milliseconds takes seconds where others are at work */
const slowMs = 20_000

/** Processor time of a process so far, s; the kernel counts it in hundredths. */
function processorS(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

test('10: while a server that crashes at every start waits for its next one, the daemon and its helpers are at rest', async () => {
  const restart = { schedule_s: [0.1, 3600], jitter: 0, steady_s: 60, storm: 1000, start_attempts: 50 }
  await using at = await daemon(configOf({ loop: fixture('crash-at-start', { restart }) }))
  const { client } = at
  const { pid } = client.hello
  await client.call('servers/start', { server: 'loop' }).catch(() => undefined)
  await eventually(async () => {
    const { instances } = await client.call('servers/get', { server: 'loop' })
    // Its guard, who asks for the credentials of peers, and the launcher of the next sandbox
    return instances[0]?.state === 'backoff' && instances[0].restarts > 0 && childrenOf(pid).length === 3
  }, slowMs)
  const processes = (): readonly number[] => [pid, ...descendantsOf(pid).map((child) => child.pid)]
  const held = () => ({ processes: processes(), descriptors: readdirSync(`/proc/${pid}/fd`).toSorted() })
  const before = held()
  const used = before.processes.map(processorS)
  const began = performance.now()
  await delay(3000)
  const wallS = (performance.now() - began) / 1000
  expect(held()).toEqual(before)
  for (const [n, one] of before.processes.entries())
    expect(processorS(one) - (used[n] ?? 0), readFileSync(`/proc/${one}/comm`, 'utf8')).toBeLessThan(
      wallS / 4,
    )
  await expectAftermath(at, client)
})
