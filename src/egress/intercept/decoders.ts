// The codings of a body that are undone here, by the names that HTTP has for them.
import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { heldBytes } from './hold-little.ts'

// zlib's own size of what it gives, bytes, and little that waits for it
const holding = { chunkSize: 16_384, writableHighWaterMark: heldBytes }

// zstd came with Node 22.15: before, such an answer is refused
const zstd = 'createZstdDecompress' in zlib ? { zstd: () => zlib.createZstdDecompress(holding) } : {}
/** A decoder of each. */
export const decoders: Readonly<Record<string, (() => Transform) | undefined>> = {
  gzip: () => zlib.createGunzip(holding),
  'x-gzip': () => zlib.createGunzip(holding),
  deflate: () => zlib.createInflate(holding),
  br: () => zlib.createBrotliDecompress(holding),
  ...zstd,
}
