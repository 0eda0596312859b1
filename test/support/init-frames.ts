// Frames of the control channel, written a second time and on purpose: a fault of the product's codec must not hide in its own mirror.

/** One frame: type, little-endian length, payload. Strings get their NUL, numbers are u32, bigints u64. */
export const frame = (
  type: string,
  ...fields: readonly (string | number | bigint | Uint8Array)[]
): Buffer => {
  const payload = Buffer.concat(fields.map(field))
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeUInt32LE(payload.length, 1)
  return Buffer.concat([head, payload])
}

const field = (value: string | number | bigint | Uint8Array): Uint8Array => {
  if (typeof value === 'string') return Buffer.from(`${value}\0`)
  if (value instanceof Uint8Array) return value
  const bytes = Buffer.alloc(typeof value === 'number' ? 4 : 8)
  if (typeof value === 'number') bytes.writeUInt32LE(value)
  else bytes.writeBigUInt64LE(value)
  return bytes
}

/** A frame as init sent it. */
export interface Received {
  readonly type: string
  readonly payload: Buffer
}

/** The whole frames in `bytes`, in order. */
export const framesIn = (bytes: Buffer): Received[] => {
  const found: Received[] = []
  for (let at = 0; bytes.length - at >= 5;) {
    const length = bytes.readUInt32LE(at + 1)
    if (bytes.length - at - 5 < length) break
    found.push({
      type: bytes.toString('latin1', at, at + 1),
      payload: bytes.subarray(at + 5, at + 5 + length),
    })
    at += 5 + length
  }
  return found
}
