// What a host reads in its session, and how a call of it has ended by that.

/** An error of ours, of the request as of the tool. */
interface Told {
  readonly message?: string
  readonly data?: { readonly code?: string }
}

interface Answer {
  readonly id?: unknown
  /** Only of what is none: the server asks the host something */
  readonly method?: unknown
  readonly error?: Told
  readonly result?: { readonly _meta?: { readonly 'sallyport/error'?: Told } }
}

/** A message, or null for a line that is none, as where the daemon or the shim was killed in the middle of it. */
export function parsed(line: string): Answer | null {
  try {
    return JSON.parse(line) as Answer
  } catch {
    return null
  }
}

/** How the call ended: `done` for an answer of the server, a code for an error of ours; and its words. */
export function endOf({ error, result }: Answer): { readonly end: string; readonly words: string } {
  // What a model is to read is an answer of the tool: that of a call that was refused, all the same.
  const told = error ?? result?._meta?.['sallyport/error']
  if (told === undefined) return { end: 'done', words: '' }
  return { end: told.data?.code ?? 'error', words: told.message ?? '' }
}
