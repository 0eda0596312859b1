// Whether a record is one of those that are asked for.
import { SallyportError } from '../errors.ts'
import { matchesName } from '../lib/glob.ts'
import { meant } from '../lib/nearest.ts'
import { recordTypes } from '../schema/record-type.ts'
import type { JournalRecord } from './record.ts'

/** What a record must be, have or be about; what is left out says nothing. */
export interface Asked {
  readonly seq?: number
  /** A type, or a pattern as `call.*` */
  readonly type?: string
  readonly server?: string
  readonly call?: string
}

/** True where the record is all that is asked for. */
export function isAsked({ seq, type, body }: JournalRecord, asked: Asked): boolean {
  if (asked.seq !== undefined && seq !== asked.seq) return false
  if (asked.type !== undefined && !matchesName(asked.type, type)) return false
  if (asked.server !== undefined && serverOf(body) !== asked.server) return false
  return asked.call === undefined || member(body, 'call') === asked.call
}

/** A record names its server, or an identity that begins with it. */
function serverOf(body: unknown): unknown {
  const identity = member(body, 'identity')
  return member(body, 'server') ?? (typeof identity === 'string' ? identity.split('/')[0] : undefined)
}

const member = (body: unknown, key: string): unknown =>
  typeof body === 'object' && body !== null && Object.hasOwn(body, key)
    ? (body as Record<string, unknown>)[key]
    : undefined

/** Throws ERR_INVALID_PARAMS where no record that this version writes could ever be of that type, or pattern. */
export function expectType(asked: string | undefined): void {
  if (asked === undefined || recordTypes.some((type) => matchesName(asked, type))) return
  const families = [...new Set(recordTypes.map((type) => type.replace(/\..*/, '.*')))]
  const got = JSON.stringify(asked)
  const slip = meant(asked, [...recordTypes, ...families]) || `: ${families.join(', ')}`
  throw new SallyportError(
    'ERR_INVALID_PARAMS',
    `audit/query: type: got ${got}, expected a type of record${slip}`,
  )
}
