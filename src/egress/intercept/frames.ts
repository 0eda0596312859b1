// What a host sends over a websocket (RFC 6455): read frame by frame, so that a secret is found across fragments and
// the last bytes of a message never wait for the next one.
import { Transform } from 'node:stream'
import type { RedactingStream, Redactor } from '../../schema/credentials.ts'
import { Refusal } from './refusal.ts'

/** A frame up to this length is passed on as one, bytes; a longer one comes as fragments, as it arrives */
const wholeBytes = 65_536
const controlBytes = 125
const continuation = 0
const close = 8

interface FrameHead {
  readonly isFinal: boolean
  readonly opcode: number
  readonly length: number
  /** Bytes of the head itself */
  readonly bytes: number
}

/**
 * A step that redacts each message of a host, over its fragments, and each control frame by itself. It fails with a
 * Refusal (websocket-frame) at a frame that a host may not send: masked, extended, reserved, out of turn.
 */
export const redactingFrames = (redactor: Redactor): Transform => {
  let held: Buffer = Buffer.alloc(0)
  let frame: FrameHead | null = null
  let left = 0
  let message: { readonly mask: RedactingStream; opcode: number } | null = null

  const begin = (): boolean => {
    frame = frameHead(held)
    if (frame === null) return false
    const { opcode, bytes, length } = frame
    if (opcode < close) {
      if ((opcode === continuation) !== (message !== null)) throw badFrame()
      message ??= { mask: redactor.mask(), opcode }
    }
    held = held.subarray(bytes)
    left = length
    return true
  }
  const takePart = (out: Transform, { isFinal, opcode }: FrameHead): void => {
    const part = held.subarray(0, left)
    held = held.subarray(part.length)
    left -= part.length
    if (opcode >= close) {
      const mask = redactor.mask()
      out.push(written(true, opcode, [mask.push(part), mask.flush()]))
      return
    }
    if (message === null) throw badFrame()
    const isLast = isFinal && left === 0
    const safe = [message.mask.push(part), ...(isLast ? [message.mask.flush()] : [])]
    if (isLast || safe.some(({ length }) => length > 0)) {
      out.push(written(isLast, message.opcode, safe))
      message.opcode = continuation
    }
    if (isLast) message = null
  }
  return new Transform({
    transform(chunk: Buffer, _, done) {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      try {
        while (frame !== null || begin()) {
          if (frame === null || held.length < Math.min(left, wholeBytes)) break
          takePart(this, frame)
          if (left === 0) frame = null
        }
        done()
      } catch (error) {
        done(error instanceof Error ? error : badFrame())
      }
    },
  })
}

/** The head at the beginning of the bytes, or null where more of them are needed. */
const frameHead = (bytes: Buffer): FrameHead | null => {
  const [first, second] = bytes
  if (first === undefined || second === undefined) return null
  const opcode = first & 0x0f
  const isFinal = (first & 0x80) !== 0
  const short = second & 0x7f
  const isKnown = opcode <= 2 || (opcode >= close && opcode <= 10)
  if ((first & 0x70) !== 0 || (second & 0x80) !== 0 || !isKnown) throw badFrame()
  if (opcode >= close && (!isFinal || short > controlBytes)) throw badFrame()
  const size = short < 126 ? 2 : short === 126 ? 4 : 10
  if (bytes.length < size) return null
  const length = size === 2 ? short : size === 4 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  if (!Number.isSafeInteger(length)) throw badFrame()
  return { isFinal, opcode, length, bytes: size }
}

const written = (isFinal: boolean, opcode: number, parts: readonly Uint8Array[]): Buffer => {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = (isFinal ? 0x80 : 0) | opcode
  head[1] = head.length === 2 ? length : head.length === 4 ? 126 : 127
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, ...parts])
}

const badFrame = (): Refusal =>
  new Refusal(502, 'websocket-frame', 'the host sent what is no frame of a websocket')
