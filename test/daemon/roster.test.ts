// Which names are taken, and by whom.
import { expect, test } from 'vitest'
import { Roster } from '../../src/daemon/roster.ts'
import type { Settings } from '../../src/schema/settings.ts'

const empty = { servers: new Map(), profiles: new Map() } as unknown as Settings
const rosterOf = (settings: Settings) => new Roster(settings, { env: {}, home: '/nonexistent', uid: 0 })

test('who lets go of a name that is another’s by now leaves it to that one', () => {
  const roster = rosterOf(empty)
  const first = roster.expect('name', '1000')
  const second = roster.expect('name', '1001')
  first[Symbol.dispose]()
  expect([roster.isTaken('name'), roster.launchers()]).toEqual([true, ['1001']])
  second[Symbol.dispose]()
  expect([roster.isTaken('name'), roster.launchers()]).toEqual([false, []])
})
