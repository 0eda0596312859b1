// What others said, as much of it as a message, an event or a record has room for.

/** Longest text of others in a message or an event, characters */
const most = 8192

/** The text, or its beginning with how much is missing. */
export const clip = (text: string): string =>
  text.length <= most
    ? text
    : `${text.slice(0, most).toWellFormed()}… (${text.length - most} more characters)`
