// Why something failed, in one line.

/** The message of what failed first: an error that came while it was undone is not why. */
export function reasonOf(error: unknown): string {
  if (error instanceof SuppressedError) return reasonOf(error.suppressed)
  const said = error instanceof Error ? error.message : String(error)
  return said.trim().split('\n').at(0) || 'an error without a word'
}
