// `sallyport permits`: what may be sent in the next seconds, and the way to stop it.
import type { Command } from 'commander'
import { SallyportError } from '../errors.ts'
import { hint, printDone, printJson, printTable } from './output.ts'
import { reach, reaching } from './reach.ts'
import { counted } from '../lib/counted.ts'
import type { ReachOptions } from './reach.ts'

interface RevokeOptions extends ReachOptions {
  readonly server?: string
  readonly reason?: string
}

export function registerPermits(program: Command): void {
  const permits = program.command('permits').description('list and revoke permits that were not used yet')
  reaching(permits.command('list', { isDefault: true }))
    .description('list the permits that live')
    .action((options: ReachOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const result = await client.call('permits/list', {}, { signal })
        if (options.json === true) return printJson(result)
        if (result.permits.length === 0)
          return hint('no permit lives: each is used the moment it is issued, or soon ends')
        printTable(
          ['PERMIT', 'UID', 'ENDS IN', 'TOOL'],
          result.permits.map(({ id, principal, expires_in_ms, identity }) => [
            id,
            principal,
            `${Math.round(expires_in_ms / 100) / 10}s`,
            identity,
          ]),
        )
      }),
    )
  reaching(permits.command('revoke'))
    .description('end one permit, or with --server all of a server')
    .argument('[id]')
    .option('--server <name>', 'every permit of this server')
    .option('--reason <text>', 'why, for the record')
    .action((id: string | undefined, options: RevokeOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const { server, reason } = options
        if ((id === undefined) === (server === undefined))
          throw new SallyportError('ERR_USAGE', 'permits revoke takes an id, or --server NAME')
        const which = id === undefined ? { server: server ?? '' } : { id }
        const asked = reason === undefined ? which : { ...which, reason }
        const result = await client.call('permits/revoke', asked, { signal })
        printDone(`${counted(result.revoked.length, 'permit')} revoked`, result, options.json)
      }),
    )
}
