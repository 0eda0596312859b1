// What a server writes to its stderr, kept for whoever asks for its logs, without the secrets that it was given.
import type { LogRing } from './log-ring.ts'
import type { Running } from '../ports.ts'

/** Keeps all of it until the process has ended. */
export function keepStderr({ stderr, redactor }: Pick<Running, 'stderr' | 'redactor'>, logs: LogRing): void {
  const clean = redactor?.stream() ?? null
  stderr.on('data', (chunk: Buffer) => logs.append(clean === null ? chunk : Buffer.from(clean.push(chunk))))
  if (clean !== null) stderr.on('end', () => logs.append(Buffer.from(clean.flush())))
  stderr.on('error', ignoreStreamError)
}

/** A broken pipe is how a dying server looks from here; its end is reported by `ended`. */
export function ignoreStreamError(): void {
  // the process's end says what there is to say
}
