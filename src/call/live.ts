// What a running server is and lists at present: noted by instance, compared with what was accepted for it.
import { visibleJson } from '../lib/visible-json.ts'
import type { SurfaceChange } from './declaration.ts'

/** What a running server lists at present, compared with what was accepted. */
export interface Live {
  readonly serverVersion: string
  readonly codeDigest: string
  /** The version that it says it is itself, or null where it says none */
  readonly saidVersion: string | null
  readonly change: SurfaceChange
  /** Digests of the tools as they are listed now */
  readonly digests: Map<string, string>
  /** What it lists as nobody can look at, by name, with the reason: said in two ways, or too long */
  readonly unreadable: ReadonlyMap<string, string>
  /** It lists as many as are looked at, so there may be more */
  readonly isFull: boolean
  /** All that it lists was looked at */
  readonly isWhole: boolean
  /** Digest of instructions, prompts and resource templates as they are listed now */
  readonly restDigest: string
}

/** What makes one server another: a version that it says itself is looked at only where both sides have one. */
export interface WhatRuns extends Pick<Live, 'serverVersion' | 'codeDigest'> {
  readonly saidVersion?: string | null | undefined
}

/** True when version and code are those that were accepted, and so is the version that it says itself. */
export const isSameServer = (accepted: WhatRuns, live: WhatRuns): boolean =>
  accepted.serverVersion === live.serverVersion &&
  accepted.codeDigest === live.codeDigest &&
  (accepted.saidVersion ?? live.saidVersion ?? null) === (live.saidVersion ?? accepted.saidVersion ?? null)

/** Which program it is, in words. */
export const whatOf = ({ serverVersion, codeDigest, saidVersion = null }: WhatRuns): string => {
  const said = saidVersion === null ? '' : `, which says that it is ${visibleJson(saidVersion)}`
  return `version ${serverVersion} with code ${codeDigest.slice(0, 12)}${said}`
}
