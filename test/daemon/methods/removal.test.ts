// A server whose removal fails is there as before: its name is its own, and the next removal takes it.
import { expect, test } from 'vitest'
import { launchMethods, type RegistrationPorts } from '../../../src/daemon/methods/registration-methods.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { Roster } from '../../../src/daemon/roster.ts'
import { SallyportError } from '../../../src/errors.ts'
import type { Settings } from '../../../src/schema/settings.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller } from '../../support/supervisor.ts'

const owner = caller().principal.id
const settings = serverSettings('echo.mjs')
const { name } = settings

/** A roster with one launched server, and how its removal goes: each step fails for as long as it is named. */
function stage() {
  const empty = { servers: new Map(), profiles: new Map() } as unknown as Settings
  const roster = new Roster(empty, { env: {}, home: '/nonexistent', uid: 0 })
  roster.add(
    { server: settings, profile: { name: settings.profile } } as never,
    { owner, request: { name } } as never,
  )
  const failing = new Set<string>()
  const running = new Set([name])
  const done: string[] = []
  const step = (what: string): void => {
    if (failing.has(what)) throw new SallyportError('ERR_INTERNAL', `${what} failed`)
    done.push(what)
  }
  const ports = {
    roster,
    supervisor: {
      settingsOf: () => settings,
      stop: async () => [],
      remove: async () => {
        running.delete(name)
        step('stop')
        return []
      },
      add: () => running.add(name),
    },
    governance: {
      revoke: () => [],
      remove: async () => {
        step('record')
        return []
      },
      resume: () => done.push('resumed'),
    },
    machine: { unpin: () => done.push('unpinned') },
    inTurn: (work: () => Promise<unknown>) => work(),
    stopping: new AbortController().signal,
  } as unknown as RegistrationPorts
  const call = { caller: caller(), signal: new AbortController().signal } as unknown as MethodCall
  const remove = async () => launchMethods(ports)['servers/remove']({ server: name }, call)
  return { roster, failing, running, done, remove }
}

test.each(['stop', 'record'])('where its %s fails', async (what) => {
  const { roster, failing, running, done, remove } = stage()
  failing.add(what)
  await expect(remove()).rejects.toThrow(`${what} failed`)
  expect([roster.stands(name), roster.isTaken(name), roster.ownerOf(name)]).toEqual([true, true, owner])
  expect([...running]).toEqual([name])
  expect(done.at(-1)).toBe('resumed')
  expect(done).not.toContain('unpinned')
  failing.clear()
  expect(await remove()).toMatchObject({ removed: name })
  expect([roster.stands(name), roster.isTaken(name), roster.launchers()]).toEqual([false, false, []])
  expect(running.size).toBe(0)
})
