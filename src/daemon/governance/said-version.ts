// The version that a server says it is, as people read it and a declaration has it.
import { hash } from 'node:crypto'
import { SallyportError } from '../../errors.ts'
import { harmless } from '../../supervisor/control/tool-view.ts'

/** Characters of a version, more than what stands for a longer one */
const longest = 128

/** What can be read, else its digest: with nothing in it that steers a terminal or hides. Null where it says none. */
export const readable = (said: string | null): string | null =>
  said === null || harmless(said, longest) === said ? said : `sha256:${hash('sha256', said)}`

/** Whether a declaration that has this version, or with null none, is of what says that. */
export const isOf = (declared: string | null, said: string | null): boolean =>
  declared === null || readable(said) === declared

/** Throws ERR_DECLARATION_MISMATCH for a declaration that is of another version. */
export function expectVersion(server: string, declared: string | null, said: string | null): void {
  if (isOf(declared, said)) return
  const now = said === null ? 'says none' : `says ${JSON.stringify(readable(said))}`
  throw new SallyportError(
    'ERR_DECLARATION_MISMATCH',
    `the declaration of ${server} is of what says that it is version ${JSON.stringify(declared)}, and ${server} ${now} (said_version); draft it anew with sallyport declare ${server}`,
    { server },
  )
}

/** Why nothing is accepted of a server at first sight, in words. */
export const whyNone = (isLiar: boolean, isAnother: boolean): string => {
  if (isLiar) return 'it says other things to its host than to us'
  return isAnother ? 'it says that it is another version than is declared' : 'nothing was accepted yet'
}

export const otherWords = 'it is another version or other code, or says that it is'
