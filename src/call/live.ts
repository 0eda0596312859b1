// What a running server is and lists at present: noted by instance, compared with what was accepted for it.
import type { AcceptedSurface, SurfaceChange } from './declaration.ts'

/** What a running server lists at present, compared with what was accepted. */
export interface Live {
  readonly serverVersion: string
  readonly codeDigest: string
  readonly change: SurfaceChange
  /** Digests of the tools as they are listed now */
  readonly digests: Map<string, string>
  /** Names of what it lists as nobody can look at: said in two ways, or too long */
  readonly unreadable: readonly string[]
  /** It lists as many as are looked at, so there may be more */
  readonly isFull: boolean
  /** All that it lists was looked at */
  readonly isWhole: boolean
  /** Digest of instructions, prompts and resource templates as they are listed now */
  readonly restDigest: string
}

/** True when version and code are those that were accepted. */
export const isSameServer = (
  accepted: Pick<AcceptedSurface, 'serverVersion' | 'codeDigest'>,
  live: Pick<Live, 'serverVersion' | 'codeDigest'>,
): boolean => accepted.serverVersion === live.serverVersion && accepted.codeDigest === live.codeDigest

/** Which program it is, in words. */
export const whatOf = ({ serverVersion, codeDigest }: Pick<Live, 'serverVersion' | 'codeDigest'>): string =>
  `version ${serverVersion} with code ${codeDigest.slice(0, 12)}`
