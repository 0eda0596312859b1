// The body of an answer on its way to the client, masked, at the pace of the slower of both.
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Redactor } from '../../schema/credentials.ts'
import type { Header } from './request-head.ts'
import { packedWatch } from './unnamed-coding.ts'

/** Chunks that one turn of the event loop may bring, and how many more cost the body a rest of one millisecond */
const chunksATurn = 1024
const chunksAMillisecond = 8

/**
 * Writes what comes through the mask, then the trailers, and ends the answer; resolves when all of it is on its way. Rejects
 * where either side breaks off, and where what is packed in the body holds a secret: whoever called ends both. By hand, since
 * node:stream's pipeline costs a short answer more than all that is done with it.
 */
export const pour = (
  body: Readable,
  redactor: Redactor,
  response: ServerResponse,
  trailers: () => readonly Header[],
): Promise<void> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const mask = redactor.mask()
  const packed = packedWatch(redactor.mask())
  // What came in one turn. A host may send each letter in a chunk of its own: they are handled together, and it rests then, so
  // that the turn is somebody else's.
  let pieces: Buffer[] = []
  let rest: NodeJS.Timeout | null = null
  let isJudging = false
  let isOver = false

  const write = (bytes: Uint8Array): void => {
    if (bytes.length > 0 && !response.write(bytes)) body.pause()
  }
  const goOn = (): void => {
    if (!isJudging && rest === null && !response.writableNeedDrain) body.resume()
  }
  const finish = (): void => {
    isOver = true
    take()
    if (isJudging) return
    try {
      write(mask.push(packed.flush()))
      write(mask.flush())
      const last = trailers()
      if (last.length > 0) response.addTrailers(last.map(([name, value]): [string, string] => [name, value]))
      response.end()
    } catch (error) {
      reject(error)
    }
  }
  const judged = (bytes: Uint8Array): void => {
    isJudging = false
    write(mask.push(bytes))
    if (isOver) finish()
    else goOn()
  }
  const brokenOff = (): void => reject(new Error('broken off'))

  const wake = (): void => {
    rest = null
    goOn()
  }
  const take = (): void => {
    const [first] = pieces
    if (first === undefined) return
    const { length } = pieces
    const bytes = length === 1 ? first : Buffer.concat(pieces)
    pieces = []
    if (length > chunksATurn) {
      body.pause()
      rest = setTimeout(wake, (length - chunksATurn) / chunksAMillisecond)
    }
    const piece = packed.push(bytes)
    if (!(piece instanceof Promise)) return write(mask.push(piece))
    isJudging = true
    body.pause()
    piece.then(judged, reject)
  }

  body.on('data', (chunk: Buffer) => {
    if (pieces.push(chunk) === 1) process.nextTick(take)
  })
  body.once('end', finish).on('error', reject)
  body.once('close', () => {
    if (!body.readableEnded) brokenOff()
  })
  response.on('drain', goOn).once('finish', resolve).on('error', reject).once('close', brokenOff)
  if (response.destroyed) brokenOff()
  promise.catch(() => body.destroy())
  return promise
}
