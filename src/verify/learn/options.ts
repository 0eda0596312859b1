// What a person says of a learning: what is run, who drives it, and what it may have beyond what it is shown.
import type { Host } from '../../config/host.ts'
import type { Logger } from '../../lib/logger.ts'
import type { NetworkGrant } from '../../schema/settings.ts'
import type { ControlId } from '../arms/controls.ts'
import type { Drive } from './drive.ts'

/** What a person offers. Nothing leaves the machine and nothing of it is changed beyond `allow` and copies of `write`. */
export interface LearnOptions {
  readonly host: Host
  readonly command: string
  readonly args: readonly string[]
  /** Name of the profile that is drafted */
  readonly name: string
  readonly drive: Drive & { readonly recorded?: () => Drive }
  /** Paths that are shown beyond those of the command line and of the drive */
  readonly read: readonly string[]
  /** Folders that it may write to; in every run it has copies */
  readonly write: readonly string[]
  readonly allow: readonly NetworkGrant[]
  /** `observe` notes which names and addresses it asks for, and lets none through but `allow` */
  readonly network: 'none' | 'observe'
  readonly pass: readonly string[]
  readonly set: Readonly<Record<string, string>>
  /** Verifies the draft by the probes that guard these controls alone; by all of them where it is left out */
  readonly controls?: readonly ControlId[]
  readonly log?: Logger
  readonly signal?: AbortSignal
  readonly onProgress?: (stage: string) => void
  readonly onStderr?: (line: string) => void
  /** Called with the draft when a host's session is over and nothing is proven yet: the host may end us soon */
  readonly onUnproven?: (text: string) => Promise<void>
}
