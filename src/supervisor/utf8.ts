// From latin1 reading back to what was written.

// oxlint-disable-next-line no-control-regex
const beyondAscii = /[^\x00-\x7f]/

/** The text from `start` to `end`, of which `text` is the latin1 reading; it must be valid UTF-8. */
export function utf8(text: string, start: number, end: number): string {
  const part = text.slice(start, end)
  return beyondAscii.test(part) ? Buffer.from(part, 'latin1').toString('utf8') : part
}
