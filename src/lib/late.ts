// Loading, when it is first needed, what a daemon can do without until then.
import { closeSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { errnoOf } from './missing.ts'

const require = createRequire(import.meta.url)

/** More than loading takes at one time, with what Node's own threads may open meanwhile */
const descriptors = 16

/**
 * Makes what gives the module that `load` imports.
 *
 * `packages` are those of CommonJS that it stands on, each before whoever needs it: they are many files, and are loaded first and
 * apart. Of what failed to be required Node keeps nothing, so that it can be tried again; of an import it keeps the failure.
 *
 * It throws EMFILE or ENFILE, and imports nothing, where hardly a descriptor is left: an import that lacked one for what the
 * module stands on would fail for as long as the process lives. It throws what to do where a file is gone: an upgrade, or
 * another build, has put other files in the place of those that this process began with.
 */
export function late<T>(load: () => Promise<T>, packages: readonly string[] = []): () => Promise<T> {
  let isThere = false
  return async () => {
    try {
      // Nothing of ours can take them before they are used: Node reads all that is imported in the same turn.
      if (!isThere) {
        assureDescriptors()
        for (const name of packages) require(name)
      }
      const part = await load()
      isThere = true
      return part
    } catch (error) {
      throw isGone(error) ? new ReplacedError(error) : error
    }
  }
}

function assureDescriptors(): void {
  const held: number[] = []
  try {
    while (held.length < descriptors) held.push(openSync('/dev/null', 'r'))
  } finally {
    for (const descriptor of held) closeSync(descriptor)
  }
}

/** Says whether a file that was to be loaded is not there; Node has another code for a thread's own. */
export const isGone = (error: unknown): boolean =>
  ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(errnoOf(error) ?? '')

/** What happened to whoever finds less, or something else, on disk than it began with; its message is for whoever asked. */
export class ReplacedError extends Error {
  constructor(cause?: unknown) {
    const what =
      'sallyport was replaced on disk while this process ran, and a part of it that was not loaded yet is gone; restart the daemon'
    super(what, { cause })
  }
}
