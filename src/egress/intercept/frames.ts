// What goes over a websocket (RFC 6455), read frame by frame either way: a secret is found across fragments and messages,
// and the last bytes of a message never wait for the next one.
import { Transform } from 'node:stream'
import type { LeakWatch, MaskingStream, Redactor } from '../../schema/credentials.ts'
import { credentialRefused, Refusal } from './refusal.ts'

/** A frame up to this length is passed on as one, bytes; a longer one comes as fragments, as it arrives */
const wholeBytes = 65_536
const controlBytes = 125
const continuation = 0
const close = 8

interface FrameHead {
  readonly isFinal: boolean
  readonly opcode: number
  readonly length: number
  /** Bytes of the head itself, its mask included */
  readonly bytes: number
  /** Four bytes, or none from a host */
  readonly mask: Buffer
}

/** Who sends: a client masks each of its frames, a host none. */
type Sender = 'client' | 'host'

/**
 * A step that redacts what a host says, over fragments and messages, and its control frames for themselves. It fails with a
 * Refusal (websocket-frame) at a frame that a host may not send: masked, extended, reserved, out of turn.
 */
export const redactingFrames = (redactor: Redactor): Transform => {
  let held: Buffer = Buffer.alloc(0)
  let frame: FrameHead | null = null
  let left = 0
  let message: { opcode: number } | null = null
  const [said, controls]: readonly [MaskingStream, MaskingStream] = [redactor.mask(), redactor.mask()]

  const begin = (): boolean => {
    frame = frameHead(held, 'host')
    if (frame === null) return false
    const { opcode, bytes, length } = frame
    if (opcode < close) {
      if ((opcode === continuation) !== (message !== null)) throw badFrame()
      message ??= { opcode }
    }
    held = held.subarray(bytes)
    left = length
    return true
  }
  const takePart = (out: Buffer[], { isFinal, opcode }: FrameHead): void => {
    const part = held.subarray(0, left)
    held = held.subarray(part.length)
    left -= part.length
    if (opcode >= close) {
      out.push(written(true, opcode, [controls.push(part), controls.settle()]))
      return
    }
    if (message === null) throw badFrame()
    const isLast = isFinal && left === 0
    const safe = [said.push(part), ...(isLast ? [said.settle()] : [])]
    if (isLast || safe.some(({ length }) => length > 0)) {
      out.push(written(isLast, message.opcode, safe))
      message.opcode = continuation
    }
    if (isLast) message = null
  }
  return new Transform({
    transform(chunk: Buffer, _, done) {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      // What comes together goes on together: a frame may be one letter, and would be an object of its own to whoever waits.
      const out: Buffer[] = []
      let failure: Error | null = null
      try {
        while (frame !== null || begin()) {
          if (frame === null || held.length < Math.min(left, wholeBytes)) break
          takePart(out, frame)
          if (left === 0) frame = null
        }
      } catch (error) {
        failure = error instanceof Error ? error : badFrame()
      }
      if (out.length > 0) this.push(Buffer.concat(out))
      done(failure)
    },
  })
}

/**
 * A step that lets what a client says pass as it is, once it was looked at: `watches` are for its messages, one after the
 * other, and for its control frames. It fails with a Refusal at what a watch names, and at a frame that a client may not send.
 */
export const watchedFrames = (watches: readonly [messages: LeakWatch, controls: LeakWatch]): Transform => {
  let head: Buffer = Buffer.alloc(0)
  let frame: FrameHead | null = null
  let done = 0
  const look = ({ opcode, mask }: FrameHead, payload: Buffer): void => {
    const plain = Buffer.from(payload)
    for (let at = 0; at < plain.length; at++)
      plain[at] = (plain[at] as number) ^ (mask[(done + at) & 3] as number)
    const found = watches[opcode < close ? 0 : 1](plain)
    if (found !== null) throw credentialRefused(`credential-${found}`)
  }
  const take = (chunk: Buffer): void => {
    for (let at = 0; at < chunk.length;) {
      if (frame === null) {
        head = Buffer.concat([head, chunk.subarray(at, ++at)])
        frame = frameHead(head, 'client')
      } else {
        const payload = chunk.subarray(at, at + frame.length - done)
        look(frame, payload)
        done += payload.length
        at += payload.length
      }
      if (frame === null || done < frame.length) continue
      head = Buffer.alloc(0)
      frame = null
      done = 0
    }
  }
  return new Transform({
    transform(chunk: Buffer, _, passed) {
      try {
        take(chunk)
        passed(null, chunk)
      } catch (error) {
        passed(error instanceof Error ? error : badFrame('client'))
      }
    },
  })
}

/** The head at the beginning of the bytes, or null where more of them are needed. */
const frameHead = (bytes: Buffer, sender: Sender): FrameHead | null => {
  const [first, second] = bytes
  if (first === undefined || second === undefined) return null
  const opcode = first & 0x0f
  const isFinal = (first & 0x80) !== 0
  const short = second & 0x7f
  const isKnown = opcode <= 2 || (opcode >= close && opcode <= 10)
  if ((first & 0x70) !== 0 || ((second & 0x80) !== 0) !== (sender === 'client') || !isKnown)
    throw badFrame(sender)
  if (opcode >= close && (!isFinal || short > controlBytes)) throw badFrame(sender)
  const size = short < 126 ? 2 : short === 126 ? 4 : 10
  const whole = size + (sender === 'client' ? 4 : 0)
  if (bytes.length < whole) return null
  const length = size === 2 ? short : size === 4 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  if (!Number.isSafeInteger(length)) throw badFrame(sender)
  return { isFinal, opcode, length, bytes: whole, mask: bytes.subarray(size, whole) }
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

const badFrame = (sender: Sender = 'host'): Refusal =>
  new Refusal(502, 'websocket-frame', `the ${sender} sent what is no frame of a websocket`)
