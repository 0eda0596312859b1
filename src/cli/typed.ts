// What the keys that come from a terminal make of the line that is typed.

/** As much of a line as is kept: an answer is one letter */
const mostTyped = 80

/** What a key sends that writes nothing: an arrow, Home, a function key, or Escape itself, also where Alt goes with another key */
const sequence = /\u001b(?:\[\[?[0-?]*[ -/]*[@-~]|O[@-~])?/g
const cutSequence = /\u001b(?:\[\[?[0-?]*[ -/]*|O)?$/

/** The keys in what was read, without those that write nothing; `cut` begins one that the next read ends. */
export function keysOf(read: string): { readonly keys: readonly string[]; readonly cut: string } {
  const cut = cutSequence.exec(read)?.[0] ?? ''
  return { keys: Array.from(read.slice(0, read.length - cut.length).replaceAll(sequence, '')), cut }
}

/** The line after one more key: Backspace, Ctrl-U and Ctrl-W take away, what can be seen is added, and nothing else counts. */
export function edited(line: string, key: string): string {
  if (key === '\b' || key === '\u007f') return line.replace(/.$/u, '')
  if (key === '\u0015') return ''
  if (key === '\u0017') return line.replace(/\S*\s*$/, '')
  return /^[^\p{C}\p{Zl}\p{Zp}]$/u.test(key) && line.length < mostTyped ? line + key : line
}
