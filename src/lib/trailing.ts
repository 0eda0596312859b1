// The ends of texts. An expression for them (`x+$`) tries again behind each letter of every run, which others make as long as they like.

/** The text without the blanks at its ends, and the control characters that the `trim` of this or that language drops there, too. */
export function trimmed(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text[start])) start++
  while (start < end && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

/** Java drops all up to U+0020, Python and Go U+0085. */
const isBlank = (char = ''): boolean => char <= ' ' || char === '\x85' || /^\s$/.test(char)

/** The text without what it ends with of one of these, however often; takes time that grows with the text alone. */
export function withoutTrailing(text: string, ends: readonly string[]): string {
  let end = text.length
  const found = (): string | undefined => ends.find((one) => text.endsWith(one, end))
  for (let one = found(); one !== undefined && end > 0; one = found()) end -= one.length
  return text.slice(0, end)
}
