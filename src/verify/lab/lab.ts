// What a launch for attempts is made of.
import type { GateSecrets } from '../../sandbox/gate.ts'
import type { LaunchHost } from '../../sandbox/host.ts'
import type { OpenDoor } from '../../sandbox/network.ts'
import type { EgressGrant } from '../../schema/egress.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../../schema/settings.ts'
import type { Canaries } from './canaries.ts'
import type { LabDoors } from './way-out.ts'

/** What answers the system calls of whatever runs in a sandbox. */
export type KernelInside = 'host' | 'gvisor'

/** A launch that is planned and started as any other, from settings that a control or a probe may change. */
export interface Lab {
  readonly host: LaunchHost
  readonly settings: Settings
  readonly server: ServerSettings
  readonly profile: ProfileSettings
  /** Whether the probes stand in for a server that is another program */
  readonly isStandIn: boolean
  /** The way out of a profile that has one */
  readonly openDoor: OpenDoor | null
  /** What that way out has beside what was granted; every name behind it leads to this machine */
  readonly grant: EgressGrant
  /** What a launch without one of the proxy's judgements has in its place, and one with budgets that are soon used up */
  readonly doors: LabDoors
  /** A pattern of names that no launch may have */
  readonly broad: { readonly pattern: string; readonly doorFor: (pattern: string) => OpenDoor }
  /** The probes' program where it was installed: what may be a server's command */
  readonly probes: string
  /** The probes' program where any user may execute it, and a folder that any user may read */
  readonly program: string
  readonly folder: string
  /** What a launch may be asked to mount: a folder of Sallyport's own, somebody's project, people's homes */
  readonly trees: Pick<Canaries, 'own' | 'workspace' | 'people' | 'socket'>
  /** A file with a capability for whoever executes it, or null where there is none */
  readonly capable: string | null
  /** Whether what a server writes is read before it is asked for, however much it is */
  readonly readsAtOnce: boolean
  /** Whether a server that goes on after it was asked to end is killed */
  readonly kills: boolean
  /** Whether a launch that is to disagree with its profile on a way out does */
  readonly disagrees: boolean
  /** How long what is to be seen from outside is waited for, ms */
  readonly patienceMs: number
  /** Secrets that the launch is given, as a call's own process is */
  readonly secrets: GateSecrets
  /** The daemon's variables, as a child without a sandbox inherits them */
  readonly variables: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}
