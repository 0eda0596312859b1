// What runs as a server, as digests: one that tells every change, and one that knows the same thing under another name.
import { hash } from 'node:crypto'
import type { Registration } from '../../sandbox/registrations.ts'
import type { ServerSettings } from '../../schema/settings.ts'

/** Digest over the program, its package and its arguments, by the operator's name for the program: other code is another server. */
export function digestOfCode({ command, args }: ServerSettings, registration: Registration | null): string {
  const program = registration?.command.file.sha256 ?? null
  return hash('sha256', JSON.stringify([command, program, registration?.package?.digest ?? null, args]))
}

/**
 * Digest of the thing itself, whatever it is called: the program's bytes, the package's, and the file of the package that it
 * begins with, wherever the package is put and whatever is said to it. Without a package, program and arguments. Null while
 * nothing is pinned.
 */
export function digestOfOrigin(
  { args, package: code }: ServerSettings,
  registration: Registration | null,
): string | null {
  if (registration === null) return null
  const target = code === null ? null : `${code.target.replace(/\/+$/, '')}/`
  const entry = target === null ? undefined : args.find((arg) => arg.startsWith(target))
  const begins = entry === undefined || target === null ? args : [entry.slice(target.length)]
  const { command, package: pinned } = registration
  return hash('sha256', JSON.stringify([command.file.sha256, pinned?.digest ?? null, begins]))
}
