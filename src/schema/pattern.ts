// A schema's pattern as a regular expression, also where it was written for a reader that takes more than ours does.

/**
 * Read as Unicode, as dialects say: a letter is one, and never two halves. There `\@`, a brace that counts nothing and a
 * hyphen beside `\w` are errors, which every other reader takes for the characters themselves, and so are they here. What
 * is no pattern even then means something else elsewhere, or nothing.
 *
 * Throws what the engine throws of what is a pattern to nobody.
 */
export function patternOf(pattern: string): RegExp {
  try {
    return new RegExp(pattern, 'u')
  } catch (error) {
    return made(spelled(pattern)) ?? raise(error)
  }
}

/** An escape, a class, a count, or any other letter */
const token = /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|k<[^>]*>|.)|\[(?:\\.|[^\]\\])*\]|\{\d+(?:,\d*)?\}|./gsu

/** What stands for one letter of a class, or for many */
const atom =
  /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|.)|./gsu

/** The same, with an escape before what only a reader of Unicode takes for more than a character. */
const spelled = (pattern: string): string =>
  pattern.replaceAll(token, (part) => {
    if (part.length > 1) return part.startsWith('[') ? spelledClass(part) : plain(part)
    return '{}]'.includes(part) ? `\\${part}` : part
  })

/** A hyphen between two atoms makes a range of them, and the next one begins anew: beside many letters it is itself. */
function spelledClass(text: string): string {
  const opening = text.startsWith('[^') ? '[^' : '['
  const atoms = text.slice(opening.length, -1).match(atom) ?? []
  let said = opening
  for (let at = 0; at < atoms.length;) {
    const [from = '', hyphen, to] = atoms.slice(at, at + 3)
    const isPair = hyphen === '-' && to !== undefined
    said += isPair ? `${plain(from)}${isSet(from) || isSet(to) ? '\\-' : '-'}${plain(to)}` : plain(from)
    at += isPair ? 3 : 1
  }
  return `${said}]`
}

/** Whether a part of a class is many letters, so that nothing can run from it or to it. */
const isSet = (part: string): boolean => /^\\[dDwWsSpP]/.test(part)

/** A hyphen, or an escape of a character, as a reader of Unicode takes it for that character. */
const plain = (part: string): string => (part === '-' ? '\\-' : part.replace(/^\\(.)$/su, unescaped))

const unescaped = (escape: string, character: string): string =>
  /[\p{L}\p{N}]/u.test(character) ? escape : `\\u{${character.codePointAt(0)?.toString(16)}}`

function made(pattern: string): RegExp | null {
  try {
    return new RegExp(pattern, 'u')
  } catch {
    return null // the first error says what is wrong with it
  }
}

function raise(error: unknown): never {
  throw error
}
