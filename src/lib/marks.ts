// Text with long runs of combining marks, which nobody writes: to normalize one takes time by the square of its length.

/** Most marks that stay in a row, as in stream-safe text (UAX #15, 13) */
const most = 30
/** Marks, and the two letters that become some */
const marks = String.raw`[\p{M}\uff9e\uff9f]`
const run = new RegExp(`${marks}+`, 'gu')
const beyond = new RegExp(`(${marks}{${most}})${marks}+`, 'gu')

/** Whether there is one: what the text is to those who normalize it is not found out then. */
export function hasLongRun(text: string): boolean {
  run.lastIndex = 0
  for (let found = run.exec(text); found !== null; found = run.exec(text))
    if (found[0].length > most) return true
  return false
}

/** The text normalized, of each run only what is not too much. */
export const normalized = (text: string, form: 'NFKC' | 'NFKD'): string =>
  (hasLongRun(text) ? text.replaceAll(beyond, '$1') : text).normalize(form)
