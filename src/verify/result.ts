// What a verification found: the shape that every report is made of, and that the JSON output has in snake_case.
import type { EnforcedLimits } from '../sandbox/driver.ts'

/**
 * `pass`: it was tried, held, and is known to be open without the control. `not-applicable`: the sandbox has nothing of the kind,
 * by its plan. `not-enforced`: nothing here holds it, and the profile does not insist; it was tried, and what was seen is said.
 * `error`: the probe could not run, its positive control was not open, or its broken arm stayed green.
 */
export type Verdict = 'pass' | 'not-applicable' | 'not-enforced' | 'fail' | 'error'

export type ProbeGroup =
  | 'files'
  | 'proc'
  | 'devices'
  | 'namespaces'
  | 'syscalls'
  | 'capabilities'
  | 'network'
  | 'environment'
  | 'descriptors'
  | 'ipc'
  | 'terminal'
  | 'resources'
  | 'time'

/** What stopped an attempt, as far as its errno and the controls that were there tell. */
export type Layer =
  | 'filter'
  | 'capability'
  | 'namespace'
  | 'mount'
  | 'mask'
  | 'kernel'
  | 'limit'
  | 'proxy'
  | 'resolver'
  | 'supervisor'

/** The same probe where nothing of its control stands: it must be open there, or a closed one proves nothing. */
export interface PositiveControl {
  readonly observed: string
  readonly isOpen: boolean
}

/** The same probe in the same sandbox with its one control taken out: it must go red there. */
export interface BrokenArm {
  /** Id of the control that was taken out */
  readonly control: string
  readonly observed: string
  readonly isRed: boolean
}

export interface ProbeResult {
  /** Stable name, such as `files.shadow` */
  readonly id: string
  /** Stable number */
  readonly number: number
  readonly group: ProbeGroup
  /** What it protects, one sentence for people */
  readonly protects: string
  /** Id of the control that stops it, one of `controls` */
  readonly control: string
  readonly expected: string
  readonly observed: string
  /** Name of the errno that stopped it, or null where none did */
  readonly errno: string | null
  readonly layer: Layer | null
  readonly verdict: Verdict
  /** Why the verdict is not `pass`, or what else is to be known of it */
  readonly detail: string | null
  /** The attempts behind the verdict, one line each */
  readonly evidence: readonly string[]
  readonly positiveControl: PositiveControl | null
  /** Null without `--self-check` */
  readonly brokenArm: BrokenArm | null
  readonly durationMs: number
}

/** What became of one line that a profile or a test file states. */
export interface AssertionResult {
  readonly text: string
  readonly reason: string
  readonly file: string
  readonly line: number
  readonly verdict: Verdict
  readonly observed: string
  readonly evidence: readonly string[]
}

/** What was seen of a real server that ran: from outside, or of what it did when it was spoken to. */
export interface Inspection {
  /** Stable name, such as `process.capabilities` */
  readonly id: string
  /** What it shows, one sentence for people */
  readonly protects: string
  readonly expected: string
  readonly observed: string
  readonly verdict: Verdict
  /** What was read, one line each; never the value of a variable */
  readonly evidence: readonly string[]
}

/** The machine that a verification speaks of; another one may have another outcome. */
export interface HostReport {
  readonly kernel: string
  readonly arch: string
  /** Uid of whoever launched; 0 drops before bubblewrap */
  readonly uid: number
  /** Version of the sandbox tool, or null where it does not say */
  readonly tool: string | null
}

export interface Verification {
  readonly profile: string
  /** Null where a profile was verified by itself */
  readonly server: string | null
  readonly driver: 'bubblewrap' | 'docker'
  /** OCI runtime that was asked for, or null for the engine's own choice */
  readonly runtime: string | null
  readonly host: HostReport
  /** ISO 8601, UTC */
  readonly startedAt: string
  /** Of all tries together */
  readonly durationMs: number
  /** What an earlier try could not show, in the words of a report, one for each such try; the rest is of the last one alone */
  readonly earlier: readonly string[]
  readonly probes: readonly ProbeResult[]
  /** Of the server's own processes; none where a profile was verified by itself */
  readonly inspections: readonly Inspection[]
  readonly assertions: readonly AssertionResult[]
  /** Which mechanism held each limit in the sandbox that was tried */
  readonly enforcedBy: EnforcedLimits
  /** The worst of all, see `overall` */
  readonly verdict: Verdict
}

const worstFirst = ['error', 'fail', 'not-enforced', 'pass', 'not-applicable'] as const satisfies Verdict[]

/**
 * Returns the verdict of many: an error outweighs a failure, that what is not enforced, and that a pass. What does not apply says
 * nothing beside others. None at all is an error: nothing was tried.
 */
export const overall = (all: readonly { readonly verdict: Verdict }[]): Verdict =>
  worstFirst.find((each) => all.some(({ verdict }) => verdict === each)) ?? 'error'

/** Whether a verdict is nobody's to mend: all that could be held was. What nothing here holds does not fail by itself. */
export const isGreen = (verdict: Verdict): boolean => verdict === 'pass' || verdict === 'not-enforced'
