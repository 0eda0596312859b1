// A server that changes what it lists, and one caller of it: in a session or over the control socket, in either era.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SallyportError } from '../../src/errors.ts'
import type { Rule, ServerSettings } from '../../src/schema/settings.ts'
import type { Launch } from '../../src/supervisor/ports.ts'
import { attach } from './attach.ts'
import type { Governed } from './governance.ts'
import { fixture, plainLaunch } from './plain-launch.ts'
import { serverSettings } from './server-settings.ts'
import { caller, superviseAll } from './supervisor.ts'
import { tempDir } from './temp-dir.ts'

const rule = (tool: string, action: Rule['action']): Rule => ({
  permission: `mcp:fixture:${tool}`,
  action,
  where: {},
  origin: 'rules[0]',
})

export interface Stage extends AsyncDisposable {
  readonly governed: Governed
  readonly record: string
  /** Calls a tool; resolves with null, or with the code of what the caller is told */
  call(name: string, args?: object): Promise<string | null>
}

interface Setting {
  readonly state: string
  readonly rules: readonly Rule[]
  readonly launch: Launch
}

type Way = (server: ServerSettings, setting: Setting) => Promise<Omit<Stage, 'record'>>

const sessionOf =
  (era: 'legacy' | 'modern'): Way =>
  async (server, setting) => {
    const host = await attach(server, { ...setting, era })
    let id = 0
    const ask = async (method: string, params: object) => {
      id += 1
      host.send({ jsonrpc: '2.0', id, method, params })
      return host.answer(id)
    }
    if (era === 'legacy') {
      await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {} })
      host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    }
    return {
      governed: host.governed,
      call: async (name, args = {}) => {
        const { error } = await ask('tools/call', { name, arguments: args })
        return error === undefined ? null : String(error.data?.['code'])
      },
      [Symbol.asyncDispose]: () => host[Symbol.asyncDispose](),
    }
  }

const control: Way = async (server, setting) => {
  const at = await superviseAll([server], setting)
  return {
    governed: at.governed,
    call: (tool, args = {}) => {
      const wanted = { server: 'fixture', tool, arguments: { raw: JSON.stringify(args) } }
      const call = { ...wanted, timeoutMs: null, generation: null, lineage: null }
      return at.supervisor.call(caller(), call, { signal: new AbortController().signal }).then(
        () => null,
        (thrown: unknown) => SallyportError.from(thrown).code,
      )
    },
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  }
}

const legacy: readonly string[] = []
const modern = ['Be kind.', 'modern']

/** How a call reaches the server, by name, with what the server is told of its era. */
export const ways = {
  'in a session': { way: sessionOf('legacy'), args: legacy },
  'over the control socket': { way: control, args: legacy },
  'in a session of the later era': { way: sessionOf('modern'), args: modern },
  'over the control socket in the later era': { way: control, args: modern },
} as const

interface StageOptions {
  readonly initializeMs?: number
  /** What becomes of `echo`; `change` is allowed */
  readonly echo?: Rule['action']
  readonly instance?: ServerSettings['instance']
  readonly launch?: Launch
}

/** The server, not started yet, and its caller. */
export async function stage(
  name: keyof typeof ways,
  { initializeMs = 10_000, echo = 'ask', instance = 'session', launch = plainLaunch }: StageOptions = {},
): Promise<Stage> {
  const dir = await tempDir()
  const record = join(dir.path, 'reached')
  const { way, args } = ways[name]
  const server = serverSettings('changes.mjs', {
    args: [fixture('changes.mjs'), record, ...args],
    instance,
    timeouts: { initializeMs, callMs: 30_000, idleMs: 600_000 },
  })
  const rules = [rule('change', 'allow'), rule('echo', echo)]
  const at = await way(server, { state: dir.path, rules, launch })
  return {
    ...at,
    record,
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]()
      await dir[Symbol.asyncDispose]()
    },
  }
}

/** What was called or asked of the server that is governed, and is no change. */
export const reached = ({ record }: Stage): readonly string[] =>
  existsSync(record) ? readFileSync(record, 'utf8').trimEnd().split('\n') : []
