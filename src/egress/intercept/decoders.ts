// The codings of a body that are undone here, by the names that HTTP has for them.
import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'

// zstd came with Node 22.15: before, such an answer is refused
const zstd = 'createZstdDecompress' in zlib ? { zstd: () => zlib.createZstdDecompress() } : {}
/** A decoder of each. */
export const decoders: Readonly<Record<string, (() => Transform) | undefined>> = {
  gzip: () => zlib.createGunzip(),
  'x-gzip': () => zlib.createGunzip(),
  deflate: () => zlib.createInflate(),
  br: () => zlib.createBrotliDecompress(),
  ...zstd,
}
