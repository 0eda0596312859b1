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

/** What fails sooner may have been missing for a moment; what hangs does so again, ms. */
const soonMs = 1_000

let kept: Promise<Fingerprint> | undefined

/**
 * Returns this host's fingerprint, taken once in the life of the process: some 50 ms the first time. One in which a trial failed
 * soon is given to whoever waits for it, and taken anew for the next.
 */
export function hostFingerprint(): Promise<Fingerprint> {
  const startedAt = performance.now()
  const forget = (): void => {
    if (performance.now() - startedAt < 4 * soonMs) kept = undefined
  }
  kept ??= fingerprint().then(
    (found) => {
      if (found.egressTrial?.works !== true) forget()
      return found
    },
    (error: unknown) => {
      forget()
      throw error
    },
  )
  return kept
}

let egressSince: Promise<Trial> | undefined

/**
 * Returns the fingerprint with its trial of the network made anew, where that was late: a machine that was busy when a daemon
 * started need not be so for as long as it lives. Whoever asks meanwhile waits for the same one; what works is believed from then on.
 */
export async function withEgressTried(found: Fingerprint): Promise<Fingerprint> {
  const { egressTrial, bubblewrap, init } = found
  const isLate = egressTrial?.works === false && egressTrial.isLate === true
  if (!isLate || bubblewrap === null || init.path === null) return found
  egressSince ??= tryAgain(tryEgress, bubblewrap.path, init.path).then(
    (trial) => {
      if (!trial.works) egressSince = undefined
      return trial
    },
    (error: unknown) => {
      egressSince = undefined
      throw error
    },
  )
  return { ...found, egressTrial: await egressSince }
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

/** A trial that fails soon is made once more: a daemon believes its outcome for as long as it lives. */
async function tryAgain(attempt: typeof tryOnce, tool: string, launcher: string): Promise<Trial> {
  const startedAt = performance.now()
  const first = await attempt(tool, launcher)
  return first.works || performance.now() - startedAt > soonMs ? first : attempt(tool, launcher)
}

async function findInit(): Promise<Fingerprint['init']> {
  try {
    return { path: await findInitBinary() }
  } catch (thrown) {
    return { path: null, cause: SallyportError.from(thrown).message }
  }
}
