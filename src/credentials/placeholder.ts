// What a server holds in a secret's place: random letters that mean nothing anywhere else.
import { randomInt } from 'node:crypto'
import { SallyportError } from '../errors.ts'

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
/** 22 letters of 62 hold 131 bits */
export const leastRandomLetters = 22

/**
 * Returns a new placeholder of `length` letters that begins with `prefix`; neither contains one of `others`, nor is
 * contained. Throws ERR_CREDENTIAL_REFUSED where the length leaves fewer than 128 random bits, or the prefix has a letter
 * that may be written in two ways.
 */
export const mintPlaceholder = (
  { prefix, length }: { readonly prefix: string; readonly length: number },
  others: readonly string[],
): string => {
  const random = length - prefix.length
  if (!/^[A-Za-z0-9_.-]*$/.test(prefix))
    throw refused(`got prefix ${JSON.stringify(prefix)}; expected letters, digits, ".", "_" and "-" alone`)
  if (random < leastRandomLetters || length > 1024)
    throw refused(
      `got length ${length} with a prefix of ${prefix.length}; expected at least ${prefix.length + leastRandomLetters}, so that 128 bits are random, and at most 1024`,
    )
  for (;;) {
    const minted = prefix + Array.from({ length: random }, () => letters[randomInt(letters.length)]).join('')
    if (!others.some((other) => other.includes(minted) || minted.includes(other))) return minted
  }
}

const refused = (why: string): SallyportError =>
  new SallyportError('ERR_CREDENTIAL_REFUSED', `the placeholder can't be made: ${why}`)
