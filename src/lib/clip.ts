// What others said, as much of it as a message, an event or a record has room for.

/** Longest text of others in a message or an event, characters */
const most = 8192

/** The text, or its beginning with how much is missing. */
export const clip = (text: string): string =>
  text.length <= most
    ? text
    : `${text.slice(0, most).toWellFormed()}… (${text.length - most} more characters)`

/** The text, or its beginning and an ellipsis in place of the rest, at most `length` characters; no half of a surrogate pair is left. */
export function beginning(text: string, length: number): string {
  if (text.length <= length) return text
  if (length < 1) return ''
  const whole = text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, '')
  return `${whole.toWellFormed()}…`
}

/** Longest reason of a refusal, and how much of its end is kept beside a beginning, characters */
const reason = { most: 1024, end: 256 } as const

/** The text, or its beginning and its end with how much is missing between: a reason may begin with a path of any length, and ends with what is wrong. */
export function clipMiddle(text: string): string {
  if (text.length <= reason.most) return text
  const [first, last] = [text.slice(0, reason.most - reason.end), text.slice(-reason.end)]
  return `${first.toWellFormed()}… (${text.length - reason.most} more characters) …${last.toWellFormed()}`
}
