// `sallyport declare NAME`: what a server says of its tools, as a draft for the operator to read and mend.
import type { Command } from 'commander'
import { formatDeclaration } from '../config/declaration.ts'
import { SallyportError } from '../errors.ts'
import { counted } from '../lib/counted.ts'
import { newOut, replaceOut } from './out.ts'
import { hint, printJson } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface DeclareOptions extends ReachOptions {
  readonly out?: string
  readonly force?: boolean
}

export function registerDeclare(program: Command): void {
  reaching(program.command('declare'))
    .description('run a server confined and draft the declaration of its tools')
    .argument('<name>')
    .option('-o, --out <file>', 'write it there instead of to stdout')
    .option('--force', 'replace that file')
    .action((server: string, options: DeclareOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        if (options.force === true && options.out === undefined)
          throw new SallyportError('ERR_USAGE', '--force replaces the file of --out FILE; say that, too')
        const result = await client.call('servers/declare', { server }, { signal })
        const text = formatDeclaration(result.declaration, result.claims, result.instructions)
        if (options.json === true) printJson(result)
        else if (options.out === undefined) process.stdout.write(text)
        if (options.out === undefined) return
        await write(options.out, text, options.force === true)
        const count = Object.keys(result.declaration.tools).length
        hint(
          `${counted(count, 'tool')} drafted; read ${options.out}, then: sallyport accept ${server} --declaration ${options.out}`,
        )
      }),
    )
}

async function write(path: string, text: string, replaces: boolean): Promise<void> {
  if (replaces) return replaceOut(path, text, 0o644, 'name another')
  await using file = await newOut(path, 0o644, 'name another, or replace it with --force')
  await file.write(text)
  await file.keep()
}
