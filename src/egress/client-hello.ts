// Reads a TLS ClientHello as it comes, over segments and record fragments, as far as the name that it asks for (RFC 8446, 6066).
import { canonicalHost } from '../lib/host-name.ts'
import { Refusal } from './refusal.ts'

const handshakeRecord = 22
const clientHello = 1
const maxFragment = 16_384
const serverNameExtension = 0

/** Longest ClientHello, bytes: key shares of today's post-quantum groups take 2 KiB of it. */
export const maxHelloBytes = 16_384
/** Records that it may be cut into: a client that sends one byte in each gains nothing. */
const maxRecords = 64
const maxHeldBytes = maxHelloBytes + 5 * maxRecords

/**
 * Takes chunks until the hello is whole. What is none is refused at the first byte that shows it. The bytes themselves
 * stay with the caller.
 */
export class ClientHello {
  /** The first chunk itself, or where it was not whole, a copy with room for all that may come */
  #held: Buffer = nothing
  #message: Buffer = nothing
  #heldBytes = 0
  #readTo = 0
  #messageBytes = 0
  #records = 0

  /** Returns the server's name once the hello is whole, canonical; null until then. Throws why it is refused. */
  push(chunk: Uint8Array): string | null {
    this.#hold(chunk.subarray(0, maxHeldBytes - this.#heldBytes))
    for (;;) {
      const length = this.#fragmentLength()
      if (length === null) return null
      this.#takeFragment(length)
      const name = this.#whole()
      if (name !== null) return name
    }
  }

  #hold(chunk: Uint8Array): void {
    if (this.#heldBytes === 0) this.#held = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    else {
      if (this.#held.length < maxHeldBytes) this.#held = roomFor(maxHeldBytes, this.#held)
      this.#held.set(chunk, this.#heldBytes)
    }
    this.#heldBytes += chunk.length
  }

  /** Length of the next fragment if all of it is here; header bytes are judged as they come. */
  #fragmentLength(): number | null {
    const at = this.#readTo
    const here = this.#heldBytes - at
    if (here > 0 && this.#held[at] !== handshakeRecord) throw noHello()
    if (here > 1 && this.#held[at + 1] !== 3) throw noHello()
    if (here > 2 && (this.#held[at + 2] ?? 0) > 4) throw noHello()
    if (here < 5) {
      if (this.#heldBytes === maxHeldBytes) throw noHello()
      return null
    }
    const length = this.#held.readUInt16BE(at + 3)
    if (length === 0 || length > maxFragment || this.#messageBytes + length > maxHelloBytes) throw noHello()
    if (here > 5 && this.#messageBytes === 0 && this.#held[at + 5] !== clientHello) throw noHello()
    return here < 5 + length ? null : length
  }

  #takeFragment(length: number): void {
    if (++this.#records > maxRecords) throw noHello()
    const fragment = this.#held.subarray(this.#readTo + 5, this.#readTo + 5 + length)
    if (this.#messageBytes === 0) this.#message = fragment
    else {
      if (this.#records === 2) this.#message = roomFor(maxHelloBytes, this.#message)
      fragment.copy(this.#message, this.#messageBytes)
    }
    this.#readTo += 5 + length
    this.#messageBytes += length
  }

  #whole(): string | null {
    if (this.#messageBytes < 4) return null
    const length = this.#message.readUIntBE(1, 3)
    if (4 + length > maxHelloBytes) throw noHello()
    if (this.#messageBytes < 4 + length) return null
    // A second message in the hello's own record has no place there, and another reader might take it for the hello
    if (this.#messageBytes > 4 + length) throw noHello()
    return serverName(new Cursor(this.#message.subarray(4, 4 + length)))
  }
}

/** Every field is walked over, so that a length that lies is found before the name is believed. */
function serverName(hello: Cursor): string {
  hello.skip(2 + 32) // legacy_version, random
  hello.vector(1, 0, 32) // legacy_session_id
  hello.vector(2, 2) // cipher_suites
  hello.vector(1, 1) // legacy_compression_methods
  if (hello.isAtEnd()) throw new Refusal('sni-missing')
  const extensions = hello.vector(2, 0)
  hello.finish()
  const seen = new Set<number>()
  let name: string | null = null
  while (!extensions.isAtEnd()) {
    const kind = extensions.number(2)
    const body = extensions.skip(extensions.number(2))
    if (seen.has(kind)) throw noHello()
    seen.add(kind)
    if (kind === serverNameExtension) name = hostName(new Cursor(body))
  }
  if (name === null) throw new Refusal('sni-missing')
  return name
}

/** One entry, of kind host_name: a list of several has no meaning, and two readers could choose differently. */
function hostName(extension: Cursor): string {
  const list = extension.vector(2, 1)
  extension.finish()
  if (list.number(1) !== 0) throw new Refusal('sni-invalid')
  const text = list.vector(2, 1).rest().toString('latin1')
  list.finish()
  const name = /^[\x21-\x7e]+$/.test(text) ? canonicalHost(text) : null
  if (name === null) throw new Refusal('sni-invalid')
  return name
}

/** Walks over length-prefixed fields; leaving their bounds means that this is no hello. */
class Cursor {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  finish(): void {
    if (!this.isAtEnd()) throw noHello()
  }

  rest(): Buffer {
    return this.#bytes.subarray(this.#at)
  }

  skip(length: number): Buffer {
    return this.#bytes.subarray(this.#pass(length), this.#at)
  }

  number(width: number): number {
    return this.#bytes.readUIntBE(this.#pass(width), width)
  }

  vector(width: number, least: number, most = Number.MAX_SAFE_INTEGER): Cursor {
    const length = this.number(width)
    if (length < least || length > most) throw noHello()
    return new Cursor(this.skip(length))
  }

  /** Goes on by so many bytes, and returns where they begin. */
  #pass(length: number): number {
    const from = this.#at
    if (from + length > this.#bytes.length) throw noHello()
    this.#at = from + length
    return from
  }
}

const nothing = Buffer.alloc(0)

function roomFor(bytes: number, begun: Buffer): Buffer {
  const room = Buffer.allocUnsafe(bytes)
  begun.copy(room)
  return room
}

const noHello = (): Refusal => new Refusal('no-client-hello')
