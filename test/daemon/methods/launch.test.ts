// A launch takes as long as its code is to be read; the name may have become the operator's meanwhile, and be free again.
import { expect, test } from 'vitest'
import { Ledger } from '../../../src/call/ledger.ts'
import { launchMethods, type RegistrationPorts } from '../../../src/daemon/methods/registration-methods.ts'
import type { MethodCall } from '../../../src/daemon/methods/methods.ts'
import { redactor } from '../../../src/daemon/redactor.ts'
import { Roster } from '../../../src/daemon/roster.ts'
import type { ServerSettings, Settings } from '../../../src/schema/settings.ts'
import { acceptedBody } from '../../support/accepted.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller } from '../../support/supervisor.ts'

const server = serverSettings('echo.mjs')
const { name } = server
const dynamic = { enabled: true, inAll: 9, profile: server.profile, trust: 'trusted', acceptance: 'manual' }

/** A configuration with those servers, in which hosts may launch. */
const settings = (...servers: readonly ServerSettings[]): Settings =>
  ({
    servers: new Map(servers.map((one) => [one.name, one])),
    profiles: new Map(),
    dynamic: { ...dynamic, allow: ['*'] },
    maxDynamicServers: 3,
  }) as unknown as Settings

const accepted = acceptedBody(name, 'echo')

/** A launch whose code is read for as long as `read` is not called. */
function stage(called: string = name) {
  const roster = new Roster(settings(), { env: {}, home: '/nonexistent', uid: 0 })
  const judged = { server, profile: { name: server.profile, path: '/p', assertions: [] } } as never
  const ledger = new Ledger({ provisionalAfter: 2, trustedAfter: 4 })
  const reading = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const done: string[] = []
  const ports = {
    roster: Object.assign(roster, { judgeLaunch: () => Promise.resolve(judged) }),
    supervisor: { has: () => false, add: () => done.push('added'), get: () => ({ name }) },
    governance: {
      ledger,
      recorder: { record: async (type: string) => void done.push(type) },
      codeOf: () => 'c',
      applied: () => null,
    },
    redactor,
    machine: {
      pin: () => (begun.resolve(), reading.promise),
      unpin: () => done.push('unpinned'),
      originOf: () => null,
    },
  } as unknown as RegistrationPorts
  const call = { caller: caller(), signal: new AbortController().signal } as unknown as MethodCall
  const launched = launchMethods(ports)['servers/launch']({ name: called, command: 'node' }, call)
  const goOver = (next: Settings): Promise<void> =>
    roster.goOver(next, {
      expectApart: () => undefined,
      record: async () => undefined,
      goneOver: () => undefined,
    })
  return {
    ledger,
    done,
    launched: Promise.resolve(launched),
    begun: begun.promise,
    read: reading.resolve,
    goOver,
  }
}

test('a name that was the operator’s meanwhile, and under which something was accepted, is not the host’s', async () => {
  const { ledger, done, launched, begun, read, goOver } = stage()
  await begun
  await goOver(settings(server))
  ledger.apply({ type: 'surface.accepted', body: accepted })
  await goOver(settings())
  read()
  await expect(launched).rejects.toMatchObject({ code: 'ERR_SERVER_EXISTS' })
  expect(done).toEqual(['unpinned'])
})

test('one that was the operator’s meanwhile, and under which nothing was accepted, is', async () => {
  const { done, launched, begun, read, goOver } = stage()
  await begun
  await goOver(settings(server))
  await goOver(settings())
  read()
  expect(await launched).toEqual({ name })
  expect(done).toEqual(['server.launched', 'added'])
})

test('a name with the shape of a secret is no server’s, since records have it as it is', async () => {
  const { done, launched } = stage(`ghp_${'a1B2'.repeat(9)}`)
  await expect(launched).rejects.toMatchObject({
    code: 'ERR_INVALID_PARAMS',
    message: expect.stringContaining('the name holds what looks like a GitHub token') as string,
  })
  expect(done).toEqual([])
})
