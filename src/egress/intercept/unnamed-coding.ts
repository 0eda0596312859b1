// A body that is compressed and says so nowhere: passed on as it is, since it may be a file, but not with a secret in it.
import type { Transform } from 'node:stream'
import type { MaskingStream } from '../../schema/credentials.ts'
import { decoders } from './decoders.ts'
import { Refusal } from './refusal.ts'

/** How each coding that has a beginning of its own begins, a test for each byte. */
const beginnings: Readonly<Record<string, readonly ((byte: number, before: number) => boolean)[]>> = {
  gzip: [(byte) => byte === 0x1f, (byte) => byte === 0x8b, (byte) => byte === 0x08],
  zstd: [(byte) => byte === 0x28, (byte) => byte === 0xb5, (byte) => byte === 0x2f, (byte) => byte === 0xfd],
  // zlib: a window of 32 KiB at most, no dictionary, and the check of both bytes (RFC 1950)
  deflate: [
    (byte) => (byte & 0x0f) === 8 && byte < 0x80,
    (byte, before) => (byte & 0x20) === 0 && (before * 256 + byte) % 31 === 0,
  ],
}
const nothing = Buffer.alloc(0)
/** What may wait for the rest of what may be a secret, bytes: a coding can be long and hold nothing */
const mostHeld = 1_048_576

/** Looks at a body as it passes, and changes nothing. */
interface PackedWatch {
  /**
   * What may go on: at once, or where the body begins as a coding does and is unpacked beside it, when what was held in it was
   * looked through. What may be the beginning of a secret is held back, packed as it is, until more of it tells. Rejects
   * where there is a secret, or more is held than may be. What can't be unpacked passes.
   */
  push(chunk: Buffer): Buffer | Promise<Buffer>
  /** What was held back; throws where it ends with a secret. */
  flush(): Buffer
}

/** Returns a watch of one body, which has `look` look through what is packed in it. */
export const packedWatch = (look: MaskingStream): PackedWatch => {
  let head: Buffer = nothing
  let isJudged = false
  let unpacker: Unpacker | null = null
  const refuseFound = (): void => {
    if (look.found.size > 0) throw packed()
  }
  const judge = async (unpacking: Unpacker, piece: Buffer): Promise<Buffer> => {
    const safe = await unpacking.push(piece)
    refuseFound()
    return safe
  }
  return {
    push(chunk) {
      if (isJudged) return unpacker === null ? chunk : judge(unpacker, chunk)
      const piece = Buffer.concat([head, chunk])
      const coding = codingOf(piece)
      if (coding === 'unknown') {
        head = piece
        return nothing
      }
      isJudged = true
      const create = coding === null ? undefined : decoders[coding]
      if (create === undefined) return piece
      unpacker = new Unpacker(create(), look)
      return judge(unpacker, piece)
    },
    flush() {
      if (!isJudged) return head
      look.flush()
      refuseFound()
      return unpacker?.flush() ?? nothing
    },
  }
}

/** The watch as a pipeline's step; it fails where the watch does. */
export const lookingInto = (watch: PackedWatch) =>
  async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) yield await watch.push(chunk)
    yield watch.flush()
  }

/** The coding that a body begins as, null for none; `unknown` while more of it must tell. */
function codingOf(head: Buffer): string | null {
  for (const [coding, beginning] of Object.entries(beginnings)) {
    const isSoFar = beginning.every((fits, at) => at >= head.length || fits(head[at] ?? 0, head[at - 1] ?? 0))
    if (isSoFar) return head.length < beginning.length ? 'unknown' : coding
  }
  return null
}

/** Gives pieces to a decoder, and has all that each gives looked through. */
class Unpacker {
  readonly #decoder: Transform
  /** Pieces that are not passed on yet, and how much was unpacked with the end of each */
  #held: readonly { readonly piece: Buffer; readonly unpackedTo: number }[] = []
  #unpacked = 0
  /** How much of that is no beginning of a secret */
  #decided = 0
  #done = (): void => undefined

  constructor(decoder: Transform, look: MaskingStream) {
    this.#decoder = decoder
    decoder
      .on('data', (bytes: Buffer) => {
        this.#unpacked += bytes.length
        this.#decided += look.push(bytes).length
      })
      .on('error', () => this.#done())
  }

  /** Returns the pieces that may go on. */
  async push(piece: Buffer): Promise<Buffer> {
    await this.#unpack(piece)
    const held = [...this.#held, { piece, unpackedTo: this.#unpacked }]
    const decidedTo = this.#decoder.destroyed ? this.#unpacked : this.#decided
    this.#held = held.filter(({ unpackedTo }) => unpackedTo > decidedTo)
    if (this.#held.reduce((sum, it) => sum + it.piece.length, 0) > mostHeld) throw packed()
    return Buffer.concat(held.slice(0, held.length - this.#held.length).map((it) => it.piece))
  }

  flush(): Buffer {
    return Buffer.concat(this.#held.map(({ piece }) => piece))
  }

  #unpack(piece: Buffer): Promise<void> {
    const decoder = this.#decoder
    return new Promise((resolve) => {
      this.#done = resolve
      // What it gave may be told a turn later than that it has given all.
      if (decoder.destroyed) resolve()
      else decoder.write(piece, () => setImmediate(resolve))
    })
  }
}

const packed = (): Refusal =>
  new Refusal(502, 'answer-packed', 'the host’s answer has a secret in it that can’t be taken out')
