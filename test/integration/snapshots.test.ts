// A daemon that is killed as it writes a snapshot: what it had recorded is all there, and what it had begun is gone.
import { once } from 'node:events'
import { existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { expectAftermath } from '../support/aftermath.ts'
import { configOf, endServe, place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { faults } from '../support/fault.ts'
import { bodiesOf, witness } from '../support/witness.ts'

/** What is only in a snapshot, right behind where it stands in the chain */
const needle = '"torn":null,"state":'
/** Each call leaves twice as much in its segment, of which one may have so many bytes */
const segmentBytes = 65_536
const text = 'x'.repeat(4096)

const call = (client: Client) =>
  client.call('tools/call', { server: 'plain', tool: 'echo', arguments: { text } })
const evidenceOf = async (client: Client) =>
  (await trustOf(client)).find(({ tool }) => tool === 'echo')?.evidence
const trustOf = async (client: Client) => (await client.call('trust/list', {})).trust

test.each([
  ['before the first byte', 'kill-before'],
  ['in the middle', 'kill-half'],
  ['before it has its name', 'kill-after'],
] as const)('a daemon that is killed as it writes a snapshot, %s, loses nothing', async (_, moment) => {
  await using seen = await witness()
  await using at = await place(
    configOf({ plain: seen.entry('plain') }, { journal: { segment_bytes: segmentBytes } }),
  )
  const fault = faults(at.folder)
  const folder = join(at.stateDir, 'journal', 'snapshots')
  const draft = join(folder, '.draft')

  // The first snapshot is written whole, since what a start folds is the last that is.
  const first = await serve(at, fault.env)
  let answered = 0
  for (; !existsSync(folder) || readdirSync(folder).every((name) => name.startsWith('.')); answered++)
    await call(first.client)
  fault.arm(`${moment} ${needle}`)
  const killed = once(first.process, 'exit')
  const lost = await (async () => {
    for (; ; answered++) await call(first.client)
  })().catch(({ code }: { code: unknown }) => code)
  expect(lost).toBe('ERR_DAEMON_UNAVAILABLE')
  expect(await killed).toEqual([null, 'SIGKILL'])
  fault.disarm()
  expect(existsSync(draft)).toBe(true)
  await first.client[Symbol.asyncDispose]()

  const second = await serve(at)
  // A start may write the one that is due; what was left is gone before.
  await eventually(() => !existsSync(draft))
  const outcomes = bodiesOf(at.stateDir, 'call.outcome')
  // Another thread writes the snapshot: it may be killed in the turn in which the last answer went on, whose end nobody knows then.
  const known = answered - 1
  expect(outcomes.length).toBeGreaterThanOrEqual(answered)
  expect(outcomes.filter(({ outcome }) => outcome === 'result').length).toBeGreaterThanOrEqual(known)
  // The last may not have come out of the daemon, or not into the server's file.
  const intents = bodiesOf(at.stateDir, 'call.intent').length
  expect(intents - seen.calls('plain').length).toBeOneOf([0, 1])
  expect(await evidenceOf(second.client)).toBeGreaterThanOrEqual(known)
  await call(second.client)
  await expectAftermath(at, second.client)
  const after = await trustOf(second.client)
  await endServe(second)

  // From the snapshots comes what comes from all records.
  renameSync(folder, join(at.folder, 'snapshots'))
  const third = await serve(at)
  expect(await trustOf(third.client)).toEqual(after)
  await endServe(third)
})
