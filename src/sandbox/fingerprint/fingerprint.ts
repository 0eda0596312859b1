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

const since: { trial?: Promise<Trial> | undefined; egressTrial?: Promise<Trial> | undefined } = {}

/**
 * Returns the fingerprint with those trials made anew that came to nothing, the one of the network where that is needed: a machine that was
 * busy, or short of something, when a daemon started need not be so for as long as it lives. Whoever asks meanwhile waits for the same one; what works is believed from then on.
 */
export async function withUnsettledTried(found: Fingerprint, isEgressNeeded: boolean): Promise<Fingerprint> {
  const { bubblewrap, init } = found
  if (bubblewrap === null || init.path === null) return found
  const [tool, launcher] = [bubblewrap.path, init.path]
  const isOfLater = isUnsettled(found.trial)
  const trial = isOfLater ? await tryOnceMore('trial', tryOnce, tool, launcher) : found.trial
  // Where the first came to nothing, the second was not made at all.
  const isEgressOwed = isUnsettled(found.egressTrial) || (isOfLater && trial?.works === true)
  const egressTrial =
    isEgressNeeded && isEgressOwed
      ? await tryOnceMore('egressTrial', tryEgress, tool, launcher)
      : found.egressTrial
  return { ...found, trial, egressTrial }
}

/** Whether nobody knows what would have come of it. */
export const isUnsettled = (trial: Trial | null): boolean =>
  trial?.works === false && trial.isUnsettled === true

function tryOnceMore(
  which: keyof typeof since,
  attempt: typeof tryOnce,
  tool: string,
  launcher: string,
): Promise<Trial> {
  since[which] ??= tryAgain(attempt, tool, launcher).then(
    (trial) => {
      if (!trial.works) since[which] = undefined
      return trial
    },
    (error: unknown) => {
      since[which] = undefined
      throw error
    },
  )
  return since[which]
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
