// What this host can enforce, found once and by doing it: the first step of every launch, and what `doctor` prints.
import { SallyportError } from '../../errors.ts'
import { findBubblewrap, type Bubblewrap } from '../bubblewrap/tool.ts'
import { detectCgroups, type CgroupSupport } from '../cgroup/level.ts'
import { findInitBinary } from '../init-binary.ts'
import { readKernelFacts, type KernelFacts } from './kernel-facts.ts'
import { tryEgress, tryOnce, type Trial } from './trial.ts'

/** Facts, and the outcome of two real sandboxes. `diagnose` says what they mean. */
export interface Fingerprint {
  readonly kernel: KernelFacts
  readonly bubblewrap: Bubblewrap | null
  /** Host path of sallyport-init, or why there is none */
  readonly init: { readonly path: string } | { readonly path: null; readonly cause: string }
  /** Null where there was nothing to try it with */
  readonly trial: Trial | null
  /** The same for a network that is an allowlist; null too where the first trial failed */
  readonly egressTrial: Trial | null
  readonly cgroups: CgroupSupport
}

let kept: Promise<Fingerprint> | undefined

/**
 * Returns this host's fingerprint, taken once in the life of the process: some 50 ms the first time. One in which not every
 * trial worked is given to whoever waits for it and taken anew for the next: what was missing may have been so for a moment.
 */
export function hostFingerprint(): Promise<Fingerprint> {
  kept ??= fingerprint().then(keepIfWhole, (error: unknown) => {
    kept = undefined
    throw error
  })
  return kept
}

function keepIfWhole(found: Fingerprint): Fingerprint {
  if (found.egressTrial?.works !== true) kept = undefined
  return found
}

/** Takes a fingerprint now. Changes nothing on the host, and never throws for what the host lacks. */
export async function fingerprint(): Promise<Fingerprint> {
  const [bubblewrap, init] = await Promise.all([findBubblewrap(), findInit()])
  const canTry = bubblewrap !== null && bubblewrap.refusal === null && init.path !== null
  const trial = canTry ? await tryAgain(tryOnce, bubblewrap.path, init.path) : null
  return {
    kernel: readKernelFacts(),
    bubblewrap,
    init,
    trial,
    egressTrial:
      canTry && trial?.works === true ? await tryAgain(tryEgress, bubblewrap.path, init.path) : null,
    cgroups: detectCgroups(),
  }
}

/** A trial that fails is made once more: its outcome is believed for as long as the daemon lives. */
async function tryAgain(attempt: typeof tryOnce, tool: string, launcher: string): Promise<Trial> {
  const first = await attempt(tool, launcher)
  return first.works ? first : attempt(tool, launcher)
}

async function findInit(): Promise<Fingerprint['init']> {
  try {
    return { path: await findInitBinary() }
  } catch (thrown) {
    return { path: null, cause: SallyportError.from(thrown).message }
  }
}
