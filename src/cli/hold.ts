// `sallyport hold`: a checkpoint that calls do not pass until it is released; without a word, the checkpoints that stand.
import type { Command } from 'commander'
import { SallyportError } from '../errors.ts'
import { hint, printDone, printJson, printTable } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'
import { wordFor } from './word.ts'

interface HoldOptions extends ReachOptions {
  readonly lineage?: string
  readonly name?: string
  readonly reason?: string
  readonly stop?: boolean
}

export function registerHold(program: Command): void {
  reaching(program.command('hold'))
    .description('hold the calls of a server, a tool or a lineage; without arguments, list what is held')
    .argument('[server]')
    .argument('[tool]')
    .option('--lineage <text>', 'only calls of this lineage', wordFor('--lineage'))
    .option('--name <name>', 'name of the hold, for release')
    .option('--reason <text>', 'why, for the record')
    .option('--stop', 'quarantine the server: stop it, too, and start nothing of it')
    .action((server: string | undefined, tool: string | undefined, options: HoldOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        const { lineage, name, reason, stop } = options
        const why = reason === undefined ? {} : { reason }
        if (stop === true) {
          if (server === undefined || [tool, lineage, name].some((other) => other !== undefined))
            throw new SallyportError('ERR_USAGE', '--stop takes a server alone: sallyport hold SERVER --stop')
          const result = await client.call('servers/quarantine', { server, ...why }, { signal })
          const done = `${server} is stopped and quarantined; sallyport release ${server} ends it`
          return printDone(done, result, options.json)
        }
        if (server === undefined && lineage === undefined && (name ?? reason) !== undefined)
          throw new SallyportError(
            'ERR_USAGE',
            '--name and --reason are of a hold; say what is held: sallyport hold SERVER, or --lineage',
          )
        if (server === undefined && lineage === undefined)
          return list(await client.call('servers/holds', {}, { signal }), options)
        const asked = {
          ...(server === undefined ? {} : { server }),
          ...(tool === undefined ? {} : { tool }),
          ...(lineage === undefined ? {} : { lineage }),
          ...(name === undefined ? {} : { name }),
        }
        const hold = await client.call('servers/hold', { ...asked, ...why }, { signal })
        printDone(`held as ${hold.name}; sallyport release ${hold.name} ends it`, hold, options.json)
      }),
    )
}

function list(
  result: {
    readonly holds: readonly {
      name: string
      server: string | null
      tool: string | null
      lineage: string | null
    }[]
  },
  { json }: ReachOptions,
): void {
  if (json === true) return printJson(result)
  if (result.holds.length === 0) return hint('nothing is held')
  printTable(
    ['HOLD', 'SERVER', 'TOOL', 'LINEAGE'],
    result.holds.map(({ name, server, tool, lineage }) => [
      name,
      server ?? 'any',
      tool ?? 'any',
      lineage ?? 'any',
    ]),
  )
}
