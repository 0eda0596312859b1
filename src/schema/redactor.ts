// What stands between evidence and its keeping: whoever knows secrets takes them out of what is written down.

/** A text with its secrets replaced, and how many there were. */
export interface Redaction {
  readonly text: string
  readonly hits: number
}

/** Pure and synchronous: it stands on the path of every call. A JSON text stays the JSON text of the same shape. */
export interface Redactor {
  redact(text: string): Redaction
  /** The same of a long JSON text, in turns of the event loop of its own */
  redactLong(text: string): Promise<Redaction>
}

/** Knows as well what can't be kept as it is: what policy goes by is not redacted, so it is not taken. */
export interface Keeper extends Redactor {
  /** What a JSON value holds that looks like a secret, in words; or null */
  shapeIn(value: unknown): string | null
  /** The same, or whose value it holds: for operators, since whoever may ask it can find out a value by guesses */
  secretIn(value: unknown): string | null
}
