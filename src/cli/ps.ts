// `sallyport ps`: the servers, what they are doing, and why.
import type { Command } from 'commander'
import { inSeconds } from '../lib/in-seconds.ts'
import type { HostState, InstanceView, ServerView } from '../rpc/protocol.ts'
import { printJson, printTable } from './output.ts'
import type { Cell } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

export function registerPs(program: Command): void {
  reaching(program.command('ps'))
    .description('list the servers and their instances')
    .action((options: ReachOptions) =>
      reach(options, 'any', async ({ client, signal }) => {
        const result = await client.call('servers/list', {}, { signal })
        if (options.json === true) printJson(result)
        else print(result.servers)
      }),
    )
}

const styles = {
  connected: 'green',
  pending: 'yellow',
  failed: 'red',
  'needs-auth': 'red',
  disabled: 'dim',
} as const satisfies Record<HostState, string>

function print(servers: readonly ServerView[]): void {
  const rows = servers.flatMap((server) => {
    const instances = server.instances.length === 0 ? [null] : server.instances
    return instances.map((instance) => row(server, instance))
  })
  printTable(['SERVER', 'STATE', 'INSTANCE', 'PID', 'UP', 'RESTARTS', 'PROFILE', 'TRUST', 'WHY'], rows)
}

function row(server: ServerView, instance: InstanceView | null): readonly (string | Cell)[] {
  const state: Cell = { text: server.state, style: styles[server.state] }
  return [
    server.name,
    instance === null ? state : { ...state, text: instance.state },
    instance?.id ?? '–',
    instance?.pid?.toString() ?? '–',
    age(instance?.up_ms ?? null),
    instance?.restarts.toString() ?? '–',
    server.profile,
    server.trust,
    [why(server, instance) ?? [], nextTry(instance), left(instance)].flat().join('; '),
  ]
}

/** Of a server that was quarantined, how its last process ended says less than what mends it. */
const why = (server: ServerView, instance: InstanceView | null): string | null =>
  instance?.state === 'quarantined' ? (server.reason ?? instance.reason) : (instance?.reason ?? server.reason)

const nextTry = (instance: InstanceView | null): readonly string[] => {
  const at = instance?.next_try_at ?? null
  return at === null ? [] : [`tried again ${inSeconds(at)}`]
}

const left = (instance: InstanceView | null): readonly string[] => {
  const orphans = instance?.orphans ?? 0
  return orphans === 0
    ? []
    : [orphans === 1 ? '1 process left to itself' : `${orphans} processes left to themselves`]
}

function age(upMs: number | null): string {
  if (upMs === null) return '–'
  const seconds = Math.round(upMs / 1000)
  if (seconds < 120) return `${seconds}s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`
}
