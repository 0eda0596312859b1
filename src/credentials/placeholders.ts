// Every placeholder that this daemon gave out, whoever holds it and whether it still stands for something.
import type { CredentialViolation, Injection } from '../schema/credentials.ts'
import type { EgressEndpoint } from '../schema/egress.ts'
import { NeedleIndex } from './needle-index.ts'

/** Placeholders of processes that have ended which are still known: a server that mints them by the call fills no memory */
export const rememberedPlaceholders = 1024

/** One sandbox, as the holder of placeholders. */
export interface Holder {
  readonly server: string
  isOver: boolean
}

interface Given {
  readonly holder: Holder
  readonly credential: string
  readonly hosts: readonly EgressEndpoint[]
}

/** A placeholder where it has no business. */
export type Stray = Pick<CredentialViolation, 'credential' | 'reason'>

/** Whose placeholders count. */
type Counts = (holder: Holder) => boolean

/** The placeholders of all sandboxes of a daemon. */
export class Placeholders {
  readonly #given = new Map<string, Given>()
  readonly #written = new NeedleIndex<Given>()
  /** Names are written in any case */
  readonly #folded = new NeedleIndex<Given>()
  #ended: readonly string[] = []

  add(placeholder: string, holder: Holder, { use, hosts }: Injection): void {
    const given = { holder, credential: use, hosts }
    this.#given.set(placeholder, given)
    for (const form of [placeholder, ...base64Of(placeholder)]) this.#written.add(form, given)
    this.#folded.add(placeholder.toLowerCase(), given)
  }

  /** The sandbox is gone: what it held is dead, and remembered until many others are. */
  end(holder: Holder): void {
    holder.isOver = true
    const own = [...this.#given].filter(([, given]) => given.holder === holder).map(([it]) => it)
    const ended = [...this.#ended, ...own]
    for (const placeholder of ended.slice(0, -rememberedPlaceholders)) this.#forget(placeholder)
    this.#ended = ended.slice(-rememberedPlaceholders)
  }

  /**
   * Returns a look at a stream that a sandbox sends, chunk by chunk: says of the first placeholder that is complete with one,
   * as it is or in base64, why it may not be there.
   */
  watch(viewer: Holder, target: EgressEndpoint, counts: Counts): (chunk: Uint8Array) => Stray | null {
    let tail: Buffer = Buffer.alloc(0)
    return (chunk) => {
      const { longest } = this.#written
      if (longest === 0) return null
      const part = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
      const bytes = tail.length === 0 ? part : Buffer.concat([tail, part])
      const given = this.#written.find(bytes, ({ holder }) => counts(holder))
      tail = Buffer.from(bytes.subarray(Math.max(0, bytes.length - longest + 1)))
      return given === null ? null : strayOf(given, viewer, target)
    }
  }

  /** The same for a text that is whole, in which letters may have lost their case. */
  look(text: string, viewer: Holder, target: EgressEndpoint): Stray | null {
    const given =
      this.#written.find(Buffer.from(text, 'latin1'), () => true) ??
      this.#folded.find(Buffer.from(text.toLowerCase(), 'latin1'), () => true)
    return given === null ? null : strayOf(given, viewer, target)
  }

  #forget(placeholder: string): void {
    this.#given.delete(placeholder)
    for (const form of [placeholder, ...base64Of(placeholder)]) this.#written.remove(form)
    this.#folded.remove(placeholder.toLowerCase())
  }
}

// What a server kept of an earlier process is its own, and dead; what another process holds it must have got from there.
const strayOf = ({ holder, credential, hosts }: Given, viewer: Holder, target: EgressEndpoint): Stray => {
  const isHere = hosts.some(({ host, port }) => host === target.host && port === target.port)
  if (holder === viewer) return { credential, reason: isHere ? 'other-place' : 'other-host' }
  if (holder.server !== viewer.server) return { credential: null, reason: 'other-sandbox' }
  if (!holder.isOver) return { credential, reason: 'other-sandbox' }
  return { credential, reason: isHere ? 'dead' : 'other-host' }
}

/** The letters of base64 that a text alone decides, wherever in the encoded bytes it begins. */
const base64Of = (text: string): readonly string[] =>
  [0, 1, 2].map((before) => {
    const encoded = Buffer.from('\0'.repeat(before) + text).toString('base64')
    return encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + text.length) * 8) / 6))
  })
