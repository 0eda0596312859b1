// A schema's pattern as a regular expression, also where it was written for a reader that takes more than ours does.

/** Escapes of letters that mean the same whether or not a pattern is read as Unicode; others mean something elsewhere */
const letters = /\\(?:[dDwWsSbBtnvfr0]|c[A-Za-z]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})/.source
const isSameWithout = new RegExp(`^(?:[^\\\\]|${letters}|\\\\[^A-Za-z0-9])*$`, 's')

/**
 * As dialects say, read as Unicode. There `\@` and `\-` are errors, which every other reader takes for the character
 * itself, and so are they here; what is no pattern even then is read as it would be without Unicode, where nothing in it
 * means anything else then.
 *
 * Throws what the engine throws of what is a pattern to nobody.
 */
export function patternOf(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags)
  } catch (error) {
    const spelled = pattern.replaceAll(/\\(.)/gsu, unescaped)
    return made(spelled, flags) ?? made(isSameWithout.test(pattern) ? pattern : null, '') ?? raise(error)
  }
}

const unescaped = (escape: string, character: string): string =>
  /[\p{L}\p{N}]/u.test(character) ? escape : `\\u{${character.codePointAt(0)?.toString(16)}}`

function made(pattern: string | null, flags: string): RegExp | null {
  if (pattern === null) return null
  try {
    return new RegExp(pattern, flags)
  } catch {
    return null // the first error says what is wrong with it
  }
}

function raise(error: unknown): never {
  throw error
}
