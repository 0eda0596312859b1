// Which names are taken, and by whom.
import { expect, test } from 'vitest'
import { settingsOf } from '../../src/config/load.ts'
import { Roster } from '../../src/daemon/roster.ts'
import { SallyportError } from '../../src/errors.ts'
import type { Settings } from '../../src/schema/settings.ts'

const empty = { servers: new Map(), profiles: new Map() } as unknown as Settings
const host = { env: {}, home: '/nonexistent', uid: 0 }
const rosterOf = (settings: Settings) => new Roster(settings, host)

test('who lets go of a name that is another’s by now leaves it to that one', () => {
  const roster = rosterOf(empty)
  const first = roster.expect('name', '1000')
  const second = roster.expect('name', '1001')
  first[Symbol.dispose]()
  expect([roster.isTaken('name'), roster.launchers()]).toEqual([true, ['1001']])
  second[Symbol.dispose]()
  expect([roster.isTaken('name'), roster.launchers()]).toEqual([false, []])
})

test('a name that a server of the operator’s had is the operator’s in every later life, by its records or by a snapshot of them', () => {
  const [first, next] = [rosterOf(empty), rosterOf(empty)]
  const records = [
    { type: 'server.registered', body: { server: 'added', entry: {}, directory: '/', by: '0' } },
    { type: 'server.removed', body: { server: 'added', by: '0', scope: 'registered' } },
    { type: 'config.applied', body: { servers: [{ server: 'configured' }] } },
    { type: 'config.applied', body: { servers: [] } },
    { type: 'server.launched', body: { server: 'launched' } },
    { type: 'server.removed', body: { server: 'launched', by: '1000', scope: 'dynamic' } },
  ] as const
  for (const record of records) for (const fold of [first, first.formerNames]) fold.fold(record)
  next.formerNames.load(first.formerNames.save())
  for (const roster of [first, next])
    expect(['added', 'configured', 'launched'].filter((name) => roster.isOperators(name))).toEqual([
      'added',
      'configured',
    ])
})

test('what was registered and would run as somebody who is a host by now is left out of the next configuration', async () => {
  const whole = await settingsOf({ version: 1, allowed_commands: ['node'] }, '/', host)
  const roster = new Roster(whole, host)
  const entry = { command: 'node', args: ['/app/x.mjs'], profile: 'node', justification: 'a test' }
  const body = { server: 'later', entry, directory: '/', by: '0' }
  roster.fold({ type: 'server.registered', body })
  const left: string[] = []
  const goOver = (expectApart: () => void): Promise<void> =>
    roster.goOver(whole, {
      expectApart,
      record: async () => undefined,
      goneOver: (_before, leftOut) => void left.push(...leftOut.map(({ code }) => code)),
    })
  await goOver(() => undefined)
  expect([left, roster.operators()]).toEqual([[], ['later']])
  await goOver(() => {
    throw new SallyportError('ERR_SEPARATION', 'a host by now')
  })
  expect([left, roster.operators()]).toEqual([['ERR_SEPARATION'], []])
})
