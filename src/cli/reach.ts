// How a verb reaches the daemon: which folder, which door, and what an interrupt does.
import type { Command } from 'commander'
import { connect } from '../client/client.ts'
import type { Client } from '../client/client.ts'
import { thisHost } from '../config/host.ts'
import { runtimeDirectory } from '../config/paths.ts'
import { SallyportError } from '../errors.ts'

/** Options of every verb that asks a daemon. */
export interface ReachOptions {
  readonly runtime?: string
  readonly json?: boolean
}

/** A verb's connection; the signal is aborted by an interrupt. */
export interface Reached {
  readonly client: Client
  readonly signal: AbortSignal
}

/** Adds `--runtime`, and `--json` where the verb reads. */
export function reaching(command: Command, { reads = true } = {}): Command {
  if (reads) command.option('--json', 'print the answer as JSON, in the shape of the control protocol')
  return command.option('--runtime <folder>', 'runtime directory of the daemon')
}

/**
 * Connects, runs, disconnects. `any` takes the operator's door where this user may open it, since it shows everybody's,
 * and else the hosts'. An interrupt cancels what is in flight and ends with status 3.
 */
export async function reach(
  { runtime }: ReachOptions,
  door: 'operator' | 'any',
  act: (reached: Reached) => Promise<void>,
): Promise<void> {
  const interrupted = new AbortController()
  const interrupt = (): void => interrupted.abort(new SallyportError('ERR_CALL_CANCELLED', 'interrupted'))
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  try {
    await using client = await open(await runtimeDirectory(runtime, thisHost()), door, interrupted.signal)
    await act({ client, signal: interrupted.signal })
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
    // Once that is told: what nobody reads of stdout would keep this process.
    if (interrupted.signal.aborted) setImmediate(() => process.exit())
  }
  interrupted.signal.throwIfAborted()
}

async function open(runtimeDir: string, door: 'operator' | 'any', signal: AbortSignal): Promise<Client> {
  try {
    return await connect({ at: { runtimeDir, role: 'operator' }, signal })
  } catch (error) {
    if (door === 'operator' || !(error instanceof SallyportError) || error.code !== 'ERR_NOT_AUTHORISED')
      throw error
    return connect({ at: { runtimeDir, role: 'host' }, signal })
  }
}
