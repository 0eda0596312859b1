// What an operator is told of a release: that something has ended which has ended by then, and has not begun anew.
import { expect, test } from 'vitest'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { trustMethods, type TrustPorts } from '../../../src/daemon/methods/trust-methods.ts'
import { actor } from '../../../src/daemon/governance/actor.ts'
import { redactor } from '../../../src/daemon/redactor.ts'
import { governanceDefaults } from '../../support/governance.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller, superviseAll, type Supervised } from '../../support/supervisor.ts'

const operator = caller(0, 'operator')
const waiting = { signal: new AbortController().signal }
const server = 'fixture'
const journal = { ...governanceDefaults.journal, durability: 'fsync' } as const

/** A server that takes its time to end. */
const stage = async (): Promise<Supervised> => {
  const all = await superviseAll([serverSettings('ignore-eof.mjs')], { settings: { journal } })
  await all.supervisor.start(operator, server, waiting)
  return all
}

const release = async (
  { supervisor, governed: { governance } }: Supervised,
  more: { readonly what?: 'quarantine' | 'hold' } = {},
) => {
  const machine = {} as TrustPorts['machine'] // only a hold that is placed drains a pool
  const methods = trustMethods({ governance, supervisor, machine, redactor })
  return methods['servers/release']({ name: server, ...more }, { caller: operator, ...waiting } as MethodCall)
}

const recordsOf = ({ governed }: Supervised, type: string) =>
  governed.records().filter((record) => record.type === type)

const isAnew = {
  code: 'ERR_SERVER_UNAVAILABLE',
  message:
    'mcp server fixture is unavailable: it was released, and is quarantined anew: it was lost 5 times; an operator lets it run again with sallyport release fixture',
}

const expectQuarantined = ({ supervisor, governed: { governance } }: Supervised): void => {
  expect(governance.ledger.quarantined()).toMatchObject([{ server, reason: 'it was lost 5 times' }])
  expect(supervisor.list(operator)).toMatchObject([{ state: 'failed' }])
}

test('a server that is quarantined anew while its release is written is not said to be released, and is not', async () => {
  await using all = await stage()
  const { consequences } = all.governed.governance
  await consequences.stop(server, 'a look', actor(operator))
  const released = release(all)
  released.catch(() => undefined) // until it is looked at
  // Written, and no disk has said yet that it has it: that takes a turn of the event loop, and this takes none.
  while (recordsOf(all, 'server.released').length === 0) await Promise.resolve()
  await consequences.storm(server, 'it was lost 5 times')
  await expect(released).rejects.toMatchObject(isAnew)
  expectQuarantined(all)
  expect(await release(all)).toEqual({ released: ['quarantine'] })
  await all.supervisor.start(operator, server, waiting)
})

test('so it is with one that is quarantined anew while it is still being stopped', async () => {
  await using all = await stage()
  const { consequences } = all.governed.governance
  const stopped = consequences.stop(server, 'a look', actor(operator))
  const released = release(all)
  released.catch(() => undefined) // until it is looked at
  while (all.governed.governance.ledger.quarantined().length > 0) await new Promise(setImmediate)
  await consequences.storm(server, 'it was lost 5 times')
  await expect(released).rejects.toMatchObject(isAnew)
  await stopped
  expectQuarantined(all)
})

test('where a hold has the name of a server that is quarantined, nothing ends that was not said', async () => {
  await using all = await stage()
  const { governance } = all.governed
  const { ledger } = governance
  await governance.add({ type: 'hold.placed', body: { name: server, server, tool: null, lineage: null } })
  await governance.consequences.stop(server, 'a look', actor(operator))
  await expect(release(all)).rejects.toMatchObject({
    code: 'ERR_INVALID_PARAMS',
    message:
      'fixture is quarantined (a look), and a hold has that name, too; say which of them ends: sallyport release fixture --hold, or --quarantine',
  })
  expect([ledger.holds().length, ledger.quarantined().length]).toEqual([1, 1])
  expect(await release(all, { what: 'hold' })).toEqual({ released: ['hold'] })
  expect([ledger.holds().length, ledger.quarantined().length]).toEqual([0, 1])
  await expect(release(all, { what: 'hold' })).rejects.toMatchObject({ code: 'ERR_HOLD_NOT_FOUND' })
  await governance.add({ type: 'hold.placed', body: { name: server, server, tool: null, lineage: null } })
  expect(await release(all, { what: 'quarantine' })).toEqual({ released: ['quarantine'] })
  expect([ledger.holds().length, ledger.quarantined().length]).toEqual([1, 0])
  expect(await release(all)).toEqual({ released: ['hold'] })
})
