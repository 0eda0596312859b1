// What every format of a report is made from.
import type { Verification } from '../result.ts'

/** A line of a file. */
export interface Place {
  readonly path: string
  readonly line: number
}

export interface Reported {
  readonly verification: Verification
  /** The line of a profile's file that decides a key of `decidedAt`, or for `server` the server's entry; the first of its own file where none does */
  readonly placeOf: (key: string) => Place
}

/** What a report is made from; every format says the same of it. */
export interface Report {
  /** Version of Sallyport */
  readonly version: string
  /** Folder that paths are told from, absolute */
  readonly folder: string
  readonly reported: readonly Reported[]
  /** Drivers under which profiles were to be tried, and were not since this user can launch nothing with them here */
  readonly unusable: readonly { readonly driver: Verification['driver']; readonly why: string }[]
}

/** A format returns the whole text of its report, with a line's end at its end. */
export type Format = (report: Report) => string
