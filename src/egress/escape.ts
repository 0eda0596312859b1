// Text from inside a sandbox, made fit for a record: no control characters, no letters that look like others, no length.

const maxShown = 253

/** Writes bytes outside of [A-Za-z0-9._:*-] as \xNN, and no more than 253 letters. */
export function escaped(text: string): string {
  return Buffer.from(text.slice(0, maxShown))
    .toString('latin1')
    .replace(/[^A-Za-z0-9._:*-]/g, (it) => `\\x${it.charCodeAt(0).toString(16).padStart(2, '0')}`)
    .slice(0, maxShown)
}
