// A body that is gzip and says so nowhere: passed on as it is, since it may be a file, but not with a secret in it.
import { createGunzip } from 'node:zlib'
import type { MaskingStream } from '../../schema/credentials.ts'
import { Refusal } from './refusal.ts'

const magic = Buffer.of(0x1f, 0x8b, 0x08)
const nothing = Buffer.alloc(0)

/** Looks at a body as it passes, and changes nothing. */
interface PackedWatch {
  /**
   * What may go on: at once, or where the body begins as gzip does and is unpacked beside it, when what the piece holds was
   * looked through. Rejects where that completes a secret. What can't be unpacked passes.
   */
  push(chunk: Buffer): Buffer | Promise<Buffer>
  /** What was held back as the beginning of gzip. */
  flush(): Buffer
}

/** Returns a watch of one body, which has `look` look through what is packed in it. */
export const packedWatch = (look: MaskingStream): PackedWatch => {
  let head: Buffer = nothing
  let isJudged = false
  let unpack: ((piece: Buffer) => Promise<void>) | null = null
  const judge = async (piece: Buffer): Promise<Buffer> => {
    await unpack?.(piece)
    if (look.found.size > 0)
      throw new Refusal(502, 'answer-packed', 'the host’s answer has a secret in it that can’t be taken out')
    return piece
  }
  return {
    push(chunk) {
      if (isJudged) return unpack === null ? chunk : judge(chunk)
      const piece = Buffer.concat([head, chunk])
      if (piece.length < magic.length && magic.subarray(0, piece.length).equals(piece)) {
        head = piece
        return nothing
      }
      isJudged = true
      if (!piece.subarray(0, magic.length).equals(magic)) return piece
      unpack = unpacker(look)
      return judge(piece)
    },
    flush: () => (isJudged ? nothing : head),
  }
}

/** Gives pieces to gunzip, and looks through all that each gives before it is done. */
const unpacker = (look: MaskingStream): ((piece: Buffer) => Promise<void>) => {
  const gunzip = createGunzip()
  let done = (): void => undefined
  gunzip.on('data', (bytes: Buffer) => void look.push(bytes)).on('error', () => done())
  return (piece) =>
    new Promise((resolve) => {
      done = resolve
      // What it gave may be told a turn later than that it has given all.
      if (gunzip.destroyed) resolve()
      else gunzip.write(piece, () => setImmediate(resolve))
    })
}
