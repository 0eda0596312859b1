// `sallyport stdio NAME`: becomes the shim, so that a configured server costs the host no Node runtime.
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { thisHost } from '../config/host.ts'
import { runtimeDirectory } from '../config/paths.ts'
import { findInitBinary } from '../sandbox/init-binary.ts'

interface StdioOptions {
  readonly autostart: boolean
  readonly runtime?: string
  readonly project?: string
}

export function registerStdio(program: Command): void {
  program
    .command('stdio')
    .description('be that server on stdin and stdout, for a host’s configuration')
    .argument('<name>')
    .option('--no-autostart', 'fail where no daemon runs instead of starting one')
    .option('--project <folder>', 'folder whose .sallyport.yaml narrows what the session may do')
    .option('--runtime <folder>', 'runtime directory of the daemon')
    .action(async (name: string, { autostart, runtime, project }: StdioOptions) => {
      const host = thisHost()
      const init = await findInitBinary()
      const shim = join(dirname(init), 'sallyport-stdio')
      const narrowed = project === undefined ? [] : ['--project', project]
      const args = [name, ...narrowed, ...(autostart ? [] : ['--no-autostart'])]
      const env = { ...host.env, SALLYPORT_RUNTIME_DIR: await runtimeDirectory(runtime, host) }
      if (typeof process.execve === 'function') process.execve(shim, [shim, ...args], env)
      // Before Node 22.15 a process can't become another; it waits beside it, and takes it along however it ends.
      const { runInPlace } = await import('../lib/exec.ts')
      process.exitCode = await runInPlace(init, ['tied', `${process.pid}`, shim, ...args], env)
    })
}
