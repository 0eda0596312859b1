// Trials of what a sandbox has nothing of.
import type { Attempt } from '../attempt.ts'
import type { Trial } from '../probe.ts'

/** A trial that means nothing in this scene. What is tried all the same is what would be there if that were not so. */
export const inapplicable = (
  expected: string,
  because: string,
  where: string,
  attempts: readonly Attempt[] = [],
): Trial => ({ expected, attempts, outside: [], inapplicable: { because, where } })

/** Where a profile has no network, for probes of what only a sandbox with one has. */
export const withoutNetworkThereIs = (expected: string, nothing: string): Trial =>
  inapplicable(expected, `the profile has no network: ${nothing}`, 'where network.mode is allowlist')

/** Where this machine has none of what the trial looks for, which is looked for all the same. */
export const absent = (because: string, { attempts }: Pick<Trial, 'attempts'>): Trial =>
  inapplicable('nothing there', because, 'where a machine has it', attempts)

/** A trial of what nobody could look for: an error, with the reason. */
export const neverTried = (expected: string, note: string): Trial => ({ expected, attempts: [], note })

/** For what depends on whether this machine can make a network at all. */
export const networkUnknown =
  'whether a sandbox here can have a network is not known: the trial of it was late'
