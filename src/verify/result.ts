// What a verification found: the shape that every report is made of, and that the JSON output has in snake_case.
import type { EnforcedLimits } from '../sandbox/driver.ts'

/** `error`: the probe could not run, its positive control was not open, or its broken arm stayed green. Never a skip */
export type Verdict = 'pass' | 'fail' | 'error'

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
  readonly durationMs: number
  readonly probes: readonly ProbeResult[]
  /** Of the server's own processes; none where a profile was verified by itself */
  readonly inspections: readonly Inspection[]
  readonly assertions: readonly AssertionResult[]
  /** Which mechanism held each limit in the sandbox that was tried */
  readonly enforcedBy: EnforcedLimits
  /** `error` where any is one, else `fail` where any failed */
  readonly verdict: Verdict
}

/** Returns the verdict of many: an error outweighs a failure, and both a pass; none at all is an error: nothing was tried. */
export const overall = (all: readonly { readonly verdict: Verdict }[]): Verdict =>
  all.length === 0
    ? 'error'
    : ((['error', 'fail'] as const).find((bad) => all.some(({ verdict }) => verdict === bad)) ?? 'pass')
