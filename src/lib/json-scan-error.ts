// Why a scan of JSON went no further, and where.

/** Why a text was refused: it is not JSON, an object in it has the same key twice, or it is nested deeper, or has more in it, than is read. */
export class JsonScanError extends Error {
  override readonly name = 'JsonScanError'
  readonly kind: 'syntax' | 'duplicate' | 'depth' | 'parts'
  readonly at: number

  constructor(kind: JsonScanError['kind'], message: string, at: number) {
    super(message)
    this.kind = kind
    this.at = at
  }
}

/** `expected` is what could stand there. */
export function syntax(text: string, at: number, expected: string): JsonScanError {
  const got = at < text.length && text[at] !== '\n' ? JSON.stringify(text[at]) : 'the end of the line'
  return new JsonScanError('syntax', `expected ${expected}, got ${got}`, at)
}

/** More than is read, of what. */
export const tooMany = (most: number, what: string, at: number): JsonScanError =>
  new JsonScanError('parts', `it has more than ${most} ${what}; send it in pieces, or as a string`, at)

/** A key that an object has already. */
export const twice = (key: string, at: number): JsonScanError =>
  new JsonScanError('duplicate', `the key ${JSON.stringify(key)} stands twice in one object`, at)
