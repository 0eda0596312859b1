// A supervisor on real processes without walls, and what it told.
import { gateOf } from '../../src/call/gate.ts'
import type { Rule, ServerSettings, Settings } from '../../src/schema/settings.ts'
import type { Caller, Happening, Launch } from '../../src/supervisor/ports.ts'
import { Supervisor } from '../../src/supervisor/supervisor.ts'
import { allowAll } from './attach.ts'
import { plainLaunch } from './plain-launch.ts'

/** A host of that uid, or the operator. */
export const caller = (uid = 1000, role: Caller['role'] = 'host'): Caller => ({
  role,
  principal: { kind: 'uid', id: String(uid), attributes: { uid, gid: uid, pid: 1 } },
})

interface Options {
  readonly rules?: readonly Rule[]
  readonly launch?: Launch
  readonly concurrency?: number
}

/** Disposing stops everything. */
export function superviseAll(
  servers: readonly ServerSettings[],
  { rules = allowAll, launch = plainLaunch, concurrency = 3 }: Options = {},
): { supervisor: Supervisor; events: Happening[]; launches: () => number } & AsyncDisposable {
  const settings = {
    servers: new Map(servers.map((server) => [server.name, server])),
    rules,
    startup: { concurrency },
    tools: { naming: '<server>_<tool>', descriptionList: 200, descriptionFull: 2048, perServer: 100 },
  } as unknown as Settings
  const events: Happening[] = []
  let launches = 0
  const gate = gateOf(rules)
  const supervisor = new Supervisor({
    settings,
    gate,
    launch: (...args) => {
      launches++
      return launch(...args)
    },
    emit: (event) => void events.push(event),
    narrow: () => Promise.resolve({ settings, gate }),
    describe: () => ({ command: null, package_digest: null, environment: {} }),
    random: () => 0.5,
  })
  return {
    supervisor,
    events,
    launches: () => launches,
    [Symbol.asyncDispose]: () => supervisor[Symbol.asyncDispose](),
  }
}
