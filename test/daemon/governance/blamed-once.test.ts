// A change that can't be recorded is a violation all the same, and one: however often it is looked at meanwhile.
import { renameSync } from 'node:fs'
import { expect, test } from 'vitest'
import { newInstanceId } from '../../../src/lib/ids.ts'
import { governed } from '../../support/governance.ts'
import { serverSettings } from '../../support/server-settings.ts'

const server = { ...serverSettings('rug-pull.mjs'), name: 's', acceptance: 'first-use' as const }

test('one change while the disk fails is one violation, and one that comes again is another', async () => {
  await using at = await governed({ servers: [server], rules: [], emit: () => undefined })
  const instance = newInstanceId()
  const lists = (description: string) => {
    const tools = new Map([['b', { name: 'b', description, inputSchema: { type: 'object' } }]])
    return at.policy.governor.observe({ server, instance, tools, saidVersion: null, rest: {} })
  }
  const count = () => at.governance.ledger.trust('s', 'b').history.length
  await lists('good')
  const away = `${at.directory}-away`
  renameSync(at.directory, away)
  for (let n = 0; n < 3; n++) await expect(lists('bad')).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
  expect(count()).toBe(1)
  await lists('good')
  await expect(lists('bad')).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
  expect(count()).toBe(2)
  renameSync(away, at.directory)
  await at.governance.consequences.recorded()
  await lists('bad')
  await lists('bad')
  expect(count()).toBe(2)
  expect(at.records().filter(({ type }) => type === 'trust.violated')).toHaveLength(2)
})
