// A body that is gzip and says so nowhere: passed on as it is, since it may be a file, but not with a secret in it.
import { createGunzip } from 'node:zlib'
import type { MaskingStream } from '../../schema/credentials.ts'
import { Refusal } from './refusal.ts'

const magic = Buffer.of(0x1f, 0x8b, 0x08)
const nothing = Buffer.alloc(0)
/** What may wait for the rest of what may be a secret, bytes: gzip can be long and hold nothing */
const mostHeld = 1_048_576

/** Looks at a body as it passes, and changes nothing. */
interface PackedWatch {
  /**
   * What may go on: at once, or where the body begins as gzip does and is unpacked beside it, when what was held in it was
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
      if (piece.length < magic.length && magic.subarray(0, piece.length).equals(piece)) {
        head = piece
        return nothing
      }
      isJudged = true
      if (!piece.subarray(0, magic.length).equals(magic)) return piece
      unpacker = new Unpacker(look)
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

/** Gives pieces to gunzip, and has all that each gives looked through. */
class Unpacker {
  readonly #gunzip = createGunzip()
  /** Pieces that are not passed on yet, and how much was unpacked with the end of each */
  #held: readonly { readonly piece: Buffer; readonly unpackedTo: number }[] = []
  #unpacked = 0
  /** How much of that is no beginning of a secret */
  #decided = 0
  #done = (): void => undefined

  constructor(look: MaskingStream) {
    this.#gunzip
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
    const decidedTo = this.#gunzip.destroyed ? this.#unpacked : this.#decided
    this.#held = held.filter(({ unpackedTo }) => unpackedTo > decidedTo)
    if (this.#held.reduce((sum, it) => sum + it.piece.length, 0) > mostHeld) throw packed()
    return Buffer.concat(held.slice(0, held.length - this.#held.length).map((it) => it.piece))
  }

  flush(): Buffer {
    return Buffer.concat(this.#held.map(({ piece }) => piece))
  }

  #unpack(piece: Buffer): Promise<void> {
    const gunzip = this.#gunzip
    return new Promise((resolve) => {
      this.#done = resolve
      // What it gave may be told a turn later than that it has given all.
      if (gunzip.destroyed) resolve()
      else gunzip.write(piece, () => setImmediate(resolve))
    })
  }
}

const packed = (): Refusal =>
  new Refusal(502, 'answer-packed', 'the host’s answer has a secret in it that can’t be taken out')
