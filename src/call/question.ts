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

/** Drawn as nothing, or over what stands before: it is read as what it is not */
const unseen = String.raw`(?! )[\p{C}\p{Z}\p{DI}\p{Me}\u2800\u{1d159}\u{16fe4}\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5\u20e6\u20ea\u20eb]`
/** Marks that go on the letters of many scripts; of those of Arabic three are usual */
const mark = String.raw`[[\p{M}&&\p{sc=Inherited}]--\p{scx=Arab}]`
/** More of them on one letter than any language piles up, and enough to cover a line */
const piled = String.raw`(?<=${mark}{2})${mark}|(?<=\p{M}{5})\p{M}`
const hidden = new RegExp(`${unseen}|${piled}`, 'gv')

/**
 * Writes every character that a terminal or an eye would miss as its escape: control and format characters, line and
 * paragraph separators, private and unassigned ones, what a font leaves out (variation selectors, fillers), blanks that
 * are not the space, the Braille one among them, and marks that strike a letter out or are piled on it.
 */
export const makeVisible = (text: string): string =>
  text.replaceAll(hidden, (character) => {
    const point = character.codePointAt(0) ?? 0
    return point > 0xffff ? `\\u{${point.toString(16)}}` : `\\u${point.toString(16).padStart(4, '0')}`
  })
