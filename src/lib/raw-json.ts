// JSON text that passes through unparsed, so that what a server wrote is what a host reads.

/** A piece of valid JSON on one line, spliced into messages byte for byte. */
export class RawJson {
  readonly raw: string

  /** The caller vouches that `raw` is one JSON value without a line feed. */
  constructor(raw: string) {
    this.raw = raw
  }
}

/** Serializes like `JSON.stringify`, except that every `RawJson` in the value is spliced in as it is. */
export function stringifyRaw(value: unknown): string {
  return (holdsRaw(value) ? write(value) : JSON.stringify(value)) ?? 'null'
}

/** Most hold none, and the engine serializes those three times as fast. */
const holdsRaw = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (value instanceof RawJson || Object.values(value).some(holdsRaw))

function write(value: unknown): string | undefined {
  if (value instanceof RawJson) return value.raw
  if (Array.isArray(value)) return `[${value.map((item) => write(item) ?? 'null').join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members: string[] = []
  for (const [key, member] of Object.entries(value)) {
    const text = write(member)
    if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`)
  }
  return `{${members.join(',')}}`
}
