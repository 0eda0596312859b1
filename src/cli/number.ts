// Numbers of a command line: digits and nothing else, since an empty word, a space and 0x10 are numbers to the language alone.

/** The whole number that a word says, or null where it says none, or one outside these bounds. */
export function wholeNumber(text: string, least = 0, most = Number.MAX_SAFE_INTEGER): number | null {
  if (!/^\d{1,16}$/.test(text)) return null
  const value = Number(text)
  return value >= least && value <= most ? value : null
}
