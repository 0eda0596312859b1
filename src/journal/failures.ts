// The ways in which a journal fails, in words for whoever must mend it.
import { SallyportError } from '../errors.ts'
import { errnoOf, isShortage } from '../lib/missing.ts'
import { isTooLong, segmentPath } from './segments.ts'

/** A journal that is not what was written. */
export const corrupt = (directory: string, segment: number, line: number, detail: string): SallyportError =>
  new SallyportError(
    'ERR_JOURNAL_CORRUPT',
    `the journal does not hold together at ${segmentPath(directory, segment)}:${line}: ${detail}; keep the folder as evidence, and start with an empty one`,
    { path: segmentPath(directory, segment), line },
  )

/** A journal that a start can't read: what it holds is not known, so nothing begins. */
export const unreadable = (path: string, cause: unknown): SallyportError =>
  new SallyportError(
    'ERR_JOURNAL',
    `the journal cannot be read at ${path} (${errnoOf(cause) ?? (cause instanceof Error ? cause.message : String(cause))}), so nothing can be called; mend the disk, or who may read there, and start again`,
    { path },
    cause instanceof Error ? { cause } : {},
  )

/** A segment of which nothing can be looked up: without an errno, or with that of a link, it is none. */
export const unaskable = (path: string, errno: string | null): SallyportError =>
  errno === null || errno === 'ELOOP'
    ? new SallyportError(
        'ERR_JOURNAL_CORRUPT',
        `${path} is no plain file: something was put in its place; sallyport audit verify says what the journal is now`,
        { path },
      )
    : unlookable(path, errno)

const unlookable = (path: string, errno: string): SallyportError =>
  new SallyportError(
    'ERR_JOURNAL',
    `the journal cannot be read at ${path} (${errno}); mend the disk, or who may read there`,
    { path },
  )

/** Whether the file system said no, and not for want of what the machine is short of. */
export const isRefused = (error: unknown): error is Error =>
  !(error instanceof SallyportError) && /^E[A-Z\d]+$/.test(errnoOf(error) ?? '') && !isShortage(error)

/** A segment that is too long to be read, and so neither what was written nor anything else. */
export const unverifiable = ({ message }: Error): SallyportError =>
  new SallyportError(
    'ERR_JOURNAL',
    `${message}, so whether the journal is what was written cannot be said; keep the folder as evidence, and start with an empty one`,
  )

/** What a look into a journal failed with: by name where the file system said no or a segment is too long, else as it is. */
export function lookFailed(directory: string, error: unknown): unknown {
  if (isTooLong(error)) return unverifiable(error)
  return isRefused(error) ? unlookable(directory, errnoOf(error) ?? '') : error
}

/** A record that was written, and stands in no segment: `seq` is its number. */
export const lacking = (directory: string, seq: number): SallyportError =>
  new SallyportError(
    'ERR_JOURNAL_CORRUPT',
    `record ${seq} was written and is not to be found in ${directory}, so nothing behind it is told; sallyport audit verify says what the journal is now`,
    { path: directory, seq },
  )

const mends: Readonly<Record<string, string>> = {
  EEXIST: 'expected a folder; move what is there',
  ENOTDIR: 'expected folders above it; move the file that is one of them',
}

/** A journal that has no folder, and gets none. */
export const unmakeable = (directory: string, errno: string, cause: unknown): SallyportError =>
  new SallyportError(
    'ERR_JOURNAL',
    `the journal cannot be made at ${directory} (${errno}): ${mends[errno] ?? 'expected a disk and a folder above it that this user may write to; mend that'}, or name another --state`,
    { path: directory },
    { cause },
  )

/** A journal that takes no records: nothing is called (MP-FH-010). */
export const unwritable = (directory: string, cause: unknown): SallyportError => {
  const errno = errnoOf(cause)
  const why = errno ?? (cause instanceof Error ? cause.message : 'closed')
  // What was done to its files says itself how it is mended; no disk is to blame.
  const what =
    errno === 'ENOENT' ? 'put back what is missing, the folder or its last segment' : 'mend the disk'
  const mend = errno === null ? '' : `; ${what}: calls resume by themselves`
  return new SallyportError(
    'ERR_JOURNAL',
    `the journal in ${directory} cannot be written (${why}), so nothing is called${mend}`,
    { path: directory },
    { cause },
  )
}
