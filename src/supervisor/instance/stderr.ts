// What a server writes to its stderr, kept for whoever asks for its logs, without the secrets that it was given, and what persons told it.
import type { LogRing } from './log-ring.ts'
import type { InstanceId } from '../../lib/ids.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Emit, Running } from '../ports.ts'

interface StderrOptions {
  readonly server: ServerSettings
  readonly principal: string
  readonly logs: LogRing
  readonly emit: Emit
}

/** Keeps all of it until the process has ended; where earlier bytes had to go for it, or some of it, that is told then. */
export function keepStderr(
  { stderr, redactor, discreet }: Pick<Running, 'stderr' | 'redactor' | 'discreet'>,
  { logs, emit, principal, server }: StderrOptions,
  instance: InstanceId,
): void {
  const streams = [redactor?.stream(), discreet?.()].filter((stream) => stream !== undefined)
  let bytes = 0
  const keep = (chunk: Uint8Array, from = 0): void => {
    const kept = streams.slice(from).reduce((said, stream) => stream.push(said), chunk)
    bytes += logs.append(Buffer.from(kept.buffer, kept.byteOffset, kept.byteLength))
  }
  stderr.on('data', (chunk: Buffer) => {
    keep(chunk)
    // What is looked through may take long, whatever a server makes of it: no more than one piece a turn.
    if (streams.length === 0) return
    stderr.pause()
    setImmediate(() => stderr.resume())
  })
  stderr.on('end', () => streams.forEach((stream, n) => keep(stream.flush(), n + 1)))
  stderr.once('close', () => {
    if (bytes > 0) emit({ type: 'logs/dropped', server: server.name, instance, principal, detail: { bytes } })
  })
  stderr.on('error', ignoreStreamError)
}

/** A broken pipe is how a dying server looks from here; its end is reported by `ended`. */
export function ignoreStreamError(): void {
  // the process's end says what there is to say
}
