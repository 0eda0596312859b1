// `sallyport show NAME`: everything that is decided about one server.
import type { Command } from 'commander'
import { inSeconds } from '../lib/in-seconds.ts'
import type { InstanceView, ServerDetail } from '../rpc/protocol.ts'
import type { PoolView } from '../rpc/pool-view.ts'
import { printFields, printJson } from './output.ts'
import { reach, reaching } from './reach.ts'
import { counted } from '../lib/counted.ts'
import type { ReachOptions } from './reach.ts'

export function registerShow(program: Command): void {
  reaching(program.command('show'))
    .description('show one server: what runs, with which grants and limits, and who holds them')
    .argument('<name>')
    .action((name: string, options: ReachOptions) =>
      reach(options, 'any', async ({ client, signal }) => {
        const server = await client.call('servers/get', { server: name }, { signal })
        if (options.json === true) printJson(server)
        else print(server)
      }),
    )
}

function print(server: ServerDetail): void {
  const { command } = server
  printFields([
    ['server', `${server.name} ${server.version}`],
    ['state', server.reason === null ? server.state : `${server.state}: ${server.reason}`],
    ['from', `${server.scope} configuration`],
    ['why', server.justification || []],
    ['trust', server.trust],
    ['profile', server.profile],
    ['command', command === null ? [] : [command.path, ...command.args]],
    ['sha256', command?.sha256 ?? []],
    ['package', server.package_digest ?? []],
    ['tools', declaredIn(server)],
    ['instructions', server.instructions ?? []],
    ['tags', server.tags.join(', ') || []],
    [
      'mounts',
      server.mounts.map(
        ({ source, target, access, reason }) => `${access}  ${source} -> ${target}  (${reason})`,
      ),
    ],
    [
      'egress',
      server.egress.map(
        ({ host, port, address, private: isPrivate, reason }) =>
          `${host}:${port}${address === null ? '' : ` at ${address}`}${isPrivate ? ' on private addresses too' : ''}${server.egress_when === 'calling' ? ' during calls' : ''}  (${reason})`,
      ),
    ],
    [
      'credentials',
      server.credentials.map(
        ({ use, inject, as, hosts }) =>
          `${use} by ${inject} as ${as}${hosts.length > 0 ? ` for ${hosts.join(', ')}` : ''}`,
      ),
    ],
    ['pool', server.pool === null ? [] : describePool(server.pool)],
    ['environment', Object.entries(server.environment).map(([key, value]) => `${key}=${value}`)],
    ...server.instances.map((instance) => ['instance', describe(instance)] as const),
  ])
}

/** Who said what its tools may do, and who says yes to them. */
function declaredIn({ surface, acceptance, declared }: ServerDetail): string {
  const by = declared === null ? 'as drafted or accepted' : `declared: ${declared.join(', ') || 'none'}`
  return `${by}; a ${surface} surface, accepted ${acceptance === 'manual' ? 'by the operator' : 'when first seen'}`
}

function describePool({ size, waiting, memory_bytes, drawn, missed, reason }: PoolView): string {
  const held = `${waiting} of ${size} wait, ${Math.round(memory_bytes / 1024)} KiB; ${counted(drawn, 'call')} had one, ${missed} found none`
  return reason === null ? held : `${held}; ${reason}`
}

function describe(instance: InstanceView): readonly string[] {
  const limits = Object.entries(instance.limits ?? {}).map(
    ([name, { limit, enforced_by }]) => `${name} ${limit}, held by ${enforced_by}`,
  )
  const state = `${instance.id} ${instance.state}, pid ${instance.pid ?? '–'}, for uid ${instance.principal}, restarts ${instance.restarts}`
  const shared = instance.sessions === null ? [] : [`shared by ${counted(instance.sessions, 'session')}`]
  const orphans =
    (instance.orphans ?? 0) === 0 ? [] : [`processes that the server left to themselves: ${instance.orphans}`]
  const waits =
    instance.next_try_at === null
      ? []
      : [`${instance.reason ?? ''}; tried again ${inSeconds(instance.next_try_at)}`]
  return [state, ...waits, ...shared, ...orphans, ...limits]
}
