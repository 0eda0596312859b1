// One output stream of a container, out of the engine's frames: kind, three zeros, length (big endian), bytes.
import type { Duplex } from 'node:stream'
import { Transform, type TransformCallback } from 'node:stream'
import { SallyportError } from '../../errors.ts'
import { holdUntilRead } from '../streams.ts'

const headBytes = 8
const kinds = { stdout: 1, stderr: 2 } as const

/** Takes the frames apart, whatever the chunks; a stream that is none is an error. */
export class Unframe extends Transform {
  readonly #kind: number
  #head = Buffer.alloc(0)
  /** Bytes of the payload that have not come yet */
  #left = 0

  constructor(name: keyof typeof kinds) {
    super()
    this.#kind = kinds[name]
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let rest = chunk
    while (rest.length > 0) {
      if (this.#left > 0) {
        const payload = rest.subarray(0, this.#left)
        this.#left -= payload.length
        rest = rest.subarray(payload.length)
        this.push(payload)
        continue
      }
      const missing = headBytes - this.#head.length
      this.#head = Buffer.concat([this.#head, rest.subarray(0, missing)])
      rest = rest.subarray(missing)
      if (this.#head.length < headBytes) break
      if (this.#head.readUInt32BE(0) !== this.#kind << 24) return done(malformed(this.#head))
      this.#left = this.#head.readUInt32BE(4)
      this.#head = Buffer.alloc(0)
    }
    done()
  }
}

const malformed = (head: Buffer): SallyportError =>
  new SallyportError(
    'ERR_SANDBOX_SETUP',
    `the container engine sent ${head.toString('hex')} where the head of a frame was due; see whether something stands between it and the daemon`,
    { step: 'gate' },
  )

/**
 * The stream without its frames, held until somebody reads. It ends where the connection does, whatever ended that, and the
 * connection is closed with it: also where nobody reads what came.
 */
export const unframed = (connection: Duplex, name: keyof typeof kinds): Unframe => {
  const stream = new Unframe(name)
  stream.on('error', () => {}).once('close', () => connection.destroy())
  connection.on('error', () => stream.end())
  connection.once('close', () => stream.end())
  connection.pipe(stream)
  holdUntilRead(stream)
  return stream
}
