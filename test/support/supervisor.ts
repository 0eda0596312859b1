// A supervisor on real processes without walls, and what it told.
import { join } from 'node:path'
import { Outputs } from '../../src/daemon/outputs.ts'
import { redactor } from '../../src/daemon/redactor.ts'
import type { Rule, ServerSettings, Settings } from '../../src/schema/settings.ts'
import type { Caller, Happening, Launch } from '../../src/supervisor/ports.ts'
import { Supervisor } from '../../src/supervisor/supervisor.ts'
import { allowAll } from './attach.ts'
import { governed, type Governed } from './governance.ts'
import { noPools, plainLaunch } from './plain-launch.ts'

/** A host of that uid, or the operator. */
export const caller = (uid = 1000, role: Caller['role'] = 'host'): Caller => ({
  role,
  principal: { kind: 'uid', id: String(uid), attributes: { uid, gid: uid, pid: 1 } },
})

interface Options {
  readonly rules?: readonly Rule[]
  readonly launch?: Launch
  readonly concurrency?: number
  readonly settings?: Partial<Settings>
  readonly state?: string
  readonly codeOf?: (server: ServerSettings) => string
}

export interface Supervised extends AsyncDisposable {
  readonly supervisor: Supervisor
  readonly governed: Governed
  readonly outputs: Outputs
  readonly events: Happening[]
  readonly launches: () => number
}

/** Disposing stops everything. */
export async function superviseAll(
  servers: readonly ServerSettings[],
  { rules = allowAll, launch = plainLaunch, concurrency = 3, ...more }: Options = {},
): Promise<Supervised> {
  const events: Happening[] = []
  let launches = 0
  const emit = (event: Happening): void => void events.push(event)
  let supervisor: Supervisor | null = null
  const halt = (server: string, reason: string): void => void supervisor?.quarantine(server, reason)
  const settings = { startup: { concurrency }, ...more.settings }
  const all = await governed({ servers, rules, emit, halt, ...more, settings })
  const policy = all.policy
  const outputs = await Outputs.open({ directory: join(all.directory, '..', 'outputs'), redactor })
  supervisor = new Supervisor({
    ...policy,
    pools: noPools,
    launch: (...args) => {
      launches++
      return launch(...args)
    },
    emit,
    narrow: () => Promise.resolve(policy),
    overflow: outputs,
    describe: () => ({ command: null, package_digest: null, environment: {} }),
    stormed: (...storm) => void all.governance.consequences.storm(...storm),
    random: () => 0.5,
  })
  all.governance.resume()
  const stop = supervisor
  return {
    supervisor,
    governed: all,
    outputs,
    events,
    launches: () => launches,
    async [Symbol.asyncDispose]() {
      await stop[Symbol.asyncDispose]()
      await outputs[Symbol.asyncDispose]()
      await all[Symbol.asyncDispose]()
    },
  }
}
