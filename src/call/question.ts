// What a person reads of a question: one line, the beginning of the arguments, and the whole of them piece by piece.
import { beginning } from '../lib/clip.ts'

/** Longest summary, and longest beginning of the arguments that goes with every list and notice, characters */
const summaryLength = 200
const headLength = 512
/** Longest piece of the arguments before what is invisible in it is written out, characters */
const pieceLength = 262_144

/** Part of the arguments in canonical form, nothing invisible in it. */
export interface Piece {
  readonly text: string
  /** Where the next piece begins, or null where this is the last */
  readonly next: number | null
}

/** At most 200 characters of identity and arguments: of a long identity its middle is left out, so that half are arguments. */
export function summaryOf(identity: string, text: string): string {
  const said = makeVisible(text.slice(0, summaryLength))
  const name = withoutMiddle(identity, Math.max(summaryLength / 2, summaryLength - said.length) - 1)
  return beginning(`${name} ${said}`, summaryLength)
}

/** How the arguments begin; all of them, mostly. And how many characters they have in all. */
export const headOf = (text: string): Piece & { readonly length: number } => ({
  ...cut(text, 0, headLength),
  length: text.length,
})

/** The piece of the arguments that begins at `offset`. */
export const pieceOf = (text: string, offset: number): Piece => cut(text, offset, pieceLength)

function cut(text: string, offset: number, length: number): Piece {
  const far = offset + length
  const isInside = /[\ud800-\udbff]/.test(text.charAt(far - 1)) // the second half of a character comes with its first
  const end = isInside ? far + 1 : far
  return { text: makeVisible(text.slice(offset, end)), next: end < text.length ? end : null }
}

function withoutMiddle(text: string, length: number): string {
  if (text.length <= length) return text
  const end = text.slice(text.length - Math.floor((length - 1) / 2))
  return `${text.slice(0, length - 1 - end.length)}…${end}`.toWellFormed()
}

/**
 * Writes every character that a terminal or an eye would miss as its escape: control and format characters, line and
 * paragraph separators, private and unassigned ones, what a font leaves out (variation selectors, fillers), and blanks that
 * are not the space, the Braille one among them.
 */
export const makeVisible = (text: string): string =>
  text.replaceAll(/(?! )[\p{C}\p{Z}\p{DI}\u2800]/gu, (character) => {
    const point = character.codePointAt(0) ?? 0
    return point > 0xffff ? `\\u{${point.toString(16)}}` : `\\u${point.toString(16).padStart(4, '0')}`
  })
