// The ends of texts. An expression for them (`x+$`) tries again behind each letter of every run, which others make as long as they like.

/** The text without what it ends with of one of these, however often; takes time that grows with the text alone. */
export function withoutTrailing(text: string, ends: readonly string[]): string {
  let end = text.length
  const found = (): string | undefined => ends.find((one) => text.endsWith(one, end))
  for (let one = found(); one !== undefined && end > 0; one = found()) end -= one.length
  return text.slice(0, end)
}
