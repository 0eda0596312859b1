// A probe: what it protects, which control stops it, and what it tries in a given scene.
import type { Remove as RemoveContained } from './lab/container-removal.ts'
import type { Exposure, Remove } from './lab/removal.ts'
import type { EnforcedLimits } from '../sandbox/driver.ts'
import type { SandboxSpec } from '../sandbox/spec.ts'
import type { ProfileSettings, ServerSettings } from '../schema/settings.ts'
import type { Attempt } from './attempt.ts'
import type { Canaries } from './lab/canaries.ts'
import type { Exhibit } from './lab/exhibit.ts'
import type { ControlId } from './arms/controls.ts'
import type { ForeignCalls } from './lab/foreign-calls.ts'
import type { KernelInside, Lab } from './lab/lab.ts'
import type { Layer, ProbeGroup } from './result.ts'
import type { WayOut } from './lab/way-out.ts'

/** The sandbox that is tried, and what of the host a server must not find. */
export interface Scene {
  readonly spec: SandboxSpec
  /** What made the sandbox: what an engine cannot leave out is expected of it */
  readonly driver: ServerSettings['driver']
  /** What answers the calls of whatever runs in there */
  readonly kernel: KernelInside
  readonly profile: ProfileSettings
  readonly enforcedBy: EnforcedLimits
  readonly canaries: Canaries
  /** Entries of the host's /proc that are covered inside */
  readonly masked: readonly string[]
  /** Kind -> what the daemon's own link in /proc/self/ns says */
  readonly namespaces: Readonly<Record<string, string>>
  readonly hostName: string
  /** Whether the daemon is root, and drops before it starts a server */
  readonly isRoot: boolean
  /** Whether a sandbox here can have a network, be it that of another profile; `unknown` where the trial of it was late */
  readonly canConnect: boolean | 'unknown'
  /** Why a control group holds nothing here, and what mends it; null where one can hold everything */
  readonly groupsMissing: string | null
  /** Whether the machine swaps */
  readonly hasSwap: boolean
  /** Whether this kernel counts processes in a sandbox's own user namespace */
  readonly countsPerNamespace: boolean
  /** Tables of calls that this kernel has beside its own */
  readonly foreign: ForeignCalls
  /** Programs of the host that have a setuid bit */
  readonly setuidPrograms: readonly string[]
  /** A file on the host with a capability for whoever executes it, or null where there is none */
  readonly capable: Exhibit['capable']
  /** Why there is none */
  readonly incapable: Exhibit['incapable']
  readonly launchers: Exposure['launchers']
  /** Memory that this process could still have */
  readonly freeBytes: number
  /** Another sandbox of the same profile that is up meanwhile: what listens in it, and its PID 1 on the host */
  readonly neighbour: { readonly port: number; readonly abstract: string | null; readonly pid: number }
  /** What stands behind the door of a profile that has one, and a name server for outside */
  readonly wayOut: Omit<WayOut, 'doors' | 'doorFor' | 'openRealDoor' | typeof Symbol.asyncDispose>
  /** What profile and server ask to have mounted, each with all below it */
  readonly asked: readonly { readonly target: string; readonly access: 'read' | 'write' }[]
  /** Whether a path of the host is in no mount, below none and above none */
  isHidden(path: string): boolean
}

/** Why a probe means nothing in a scene. */
export interface Inapplicable {
  readonly because: string
  /** Where it would mean something */
  readonly where: string
}

/** What one probe tries in one scene. */
export interface Trial {
  /** What is expected, in the words of a report */
  readonly expected: string
  readonly attempts: readonly Attempt[]
  /** What is tried outside in their place, where these would harm or mean nothing there */
  readonly outside?: readonly Attempt[]
  /** Why the sandbox has nothing of the kind, by its plan or its machine. What is tried all the same must be shut */
  readonly inapplicable?: Inapplicable
  /** Why nothing holds it, where the profile does not insist. It is tried all the same, and what comes of it is said */
  readonly unenforced?: string
  /** What a reader must know of this host or profile, whatever the outcome */
  readonly note?: string
  /** What stops it, where that is not what the control stands for */
  readonly layer?: Layer
  /** Stopped there by more than the control, so that a sandbox without that shows nothing */
  readonly isHeldBeside?: true
}

export interface Probe {
  readonly id: string
  /** Number in the battery; those above 111 are of Sallyport's own controls */
  readonly number: number
  readonly group: ProbeGroup
  readonly protects: string
  readonly control: ControlId
  /** Takes so much, or ends so badly, that it has a launch to itself */
  readonly isAlone?: true
  /** Takes so much of the machine, or changes what others look at, that nothing else is tried meanwhile */
  readonly isApart?: true
  /** Changes the launch that it has to itself, so that what stands before its control has failed already */
  readonly provoke?: Remove
  /** The same in a container */
  readonly provokeContainer?: RemoveContained
  /** Gives the launch that it has to itself more than a battery's has */
  readonly within?: (lab: Lab) => Lab
  /** How the launch must end where it is alone and ends before it answers, or never begin; else it must answer */
  readonly endsBy?: 'oom' | 'refused' | 'end'
  trial(scene: Scene): Trial
}
