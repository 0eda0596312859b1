// From latin1 reading back to what was written.
import { isAscii, isUtf8 } from 'node:buffer'

// oxlint-disable-next-line no-control-regex
const beyondAscii = /[^\x00-\x7f]/

/** Memory through which a long text goes to be looked at: for more than a few characters that is quicker than an expression */
const window = Buffer.allocUnsafeSlow(65_536)
const longText = 1024

/** The text from `start` to `end`, of which `text` is the latin1 reading; it must be valid UTF-8. */
export function utf8(text: string, start: number, end: number): string {
  const part = text.slice(start, end)
  return isAllPlain(text) || isPlain(part) ? part : Buffer.from(part, 'latin1').toString('utf8')
}

/** The same of a place, where there is one. */
export const utf8Of = (
  text: string,
  span: { readonly start: number; readonly end: number } | null,
): string | null => (span === null ? null : utf8(text, span.start, span.end))

/** The text that was looked at last as a whole, and whether all of it is ASCII: one has many messages, and many parts are asked for */
let last = ''
let isLastPlain = true

function isAllPlain(text: string): boolean {
  if (text.length > window.length) return false
  if (text !== last) {
    last = text
    isLastPlain = isPlain(text)
  }
  return isLastPlain
}

function isPlain(part: string): boolean {
  if (part.length <= longText) return !beyondAscii.test(part)
  for (let at = 0; at < part.length; at += window.length) {
    const length = window.write(part.slice(at, at + window.length), 'latin1')
    if (!isAscii(window.subarray(0, length))) return false
  }
  return true
}

/** Longest chunk that is remembered: what is longer is one line, which nothing but itself is worth keeping for, bytes */
const longestChunk = 65_536

/** Whether lines are UTF-8: whole chunks are checked at once; only where that fails, line by line. */
export class TextCheck {
  #checked: Buffer | null = null

  isText(bytes: Buffer, start: number, end: number): boolean {
    if (bytes === this.#checked) return true
    if (!isUtf8(bytes)) return isUtf8(bytes.subarray(start, end))
    if (bytes.length <= longestChunk) this.#checked = bytes
    return true
  }
}
