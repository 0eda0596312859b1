// What a daemon that nobody watches is started with, whoever starts it: the same few names as the shim passes on.
import type { Host } from './host.ts'

const passed = new Set(['PATH', 'HOME', 'USER', 'LANG'])

/** Picks them; credentials that come from other variables need `sallyport serve` in the shell that has them. */
export function daemonEnvironment({ env }: Pick<Host, 'env'>): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && (passed.has(name) || name.startsWith('SALLYPORT_'))) kept[name] = value
  return kept
}
