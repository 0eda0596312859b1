// A body that is gzip and says so nowhere: passed on as it is, since it may be a file, but not with a secret in it.
import { createGunzip } from 'node:zlib'
import type { MaskingStream } from '../../schema/credentials.ts'
import { Refusal } from './refusal.ts'

const magic = Buffer.of(0x1f, 0x8b, 0x08)

/**
 * Returns a step of a pipeline that changes nothing. What begins as gzip does is unpacked beside it, and each piece goes on
 * once what it holds was looked through: a secret that it completes breaks the answer off. What can't be unpacked passes.
 */
export const withoutPackedSecrets = (look: MaskingStream) =>
  async function* (body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let head: Buffer = Buffer.alloc(0)
    let isJudged = false
    let unpack: ((piece: Buffer) => Promise<void>) | null = null
    for await (const chunk of body) {
      const piece = isJudged ? chunk : Buffer.concat([head, chunk])
      if (!isJudged && piece.length < magic.length && magic.subarray(0, piece.length).equals(piece)) {
        head = piece
        continue
      }
      if (!isJudged && piece.subarray(0, magic.length).equals(magic)) unpack = unpacker(look)
      isJudged = true
      await unpack?.(piece)
      if (look.found.size > 0)
        throw new Refusal(
          502,
          'answer-packed',
          'the host’s answer has a secret in it that can’t be taken out',
        )
      yield piece
    }
    if (!isJudged) yield head
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
