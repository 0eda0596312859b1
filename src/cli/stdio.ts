// `sallyport stdio NAME`: becomes the shim, so that a configured server costs the host no Node runtime.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { thisHost } from '../config/host.ts'
import { runtimeDirectory } from '../config/paths.ts'
import { findInitBinary } from '../sandbox/init-binary.ts'

interface StdioOptions {
  readonly autostart: boolean
  readonly runtime?: string
}

export function registerStdio(program: Command): void {
  program
    .command('stdio')
    .description('be that server on stdin and stdout, for a host’s configuration')
    .argument('<name>')
    .option('--no-autostart', 'fail where no daemon runs instead of starting one')
    .option('--runtime <folder>', 'runtime directory of the daemon')
    .action(async (name: string, { autostart, runtime }: StdioOptions) => {
      const host = thisHost()
      const shim = join(dirname(await findInitBinary()), 'sallyport-stdio')
      const args = autostart ? [name] : [name, '--no-autostart']
      const env = { ...host.env, SALLYPORT_RUNTIME_DIR: await runtimeDirectory(runtime, host) }
      if (typeof process.execve === 'function') process.execve(shim, [shim, ...args], env)
      process.exitCode = await beside(shim, args, env)
    })
}

// Before Node 22.15 a process can't become another: it waits beside the shim and passes on what it is sent.
async function beside(shim: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(shim, args, { stdio: 'inherit', env })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  child.once('error', reject)
  child.once('exit', (code, signal) =>
    resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
  )
  return promise
}
