// What is spoken on a port that does not say so: TLS and HTTP name a host there too, and it must be the one that was judged.
import type { EgressEndpoint } from '../schema/egress.ts'
import { ClientHello } from './client-hello.ts'
import { bodyOf } from './http-framing.ts'
import type { Look } from './http-framing.ts'
import { headReader } from './http-head.ts'
import { judgedFraming, upgrades } from './http-request.ts'
import { headBytes } from './limits.ts'
import { Refusal } from './refusal.ts'

/** Whom it must be for, and who looks at what chunked bodies carry. */
interface Spoken extends EgressEndpoint {
  readonly look: Look
}

/** Takes bytes from `at` on; returns how many were its own, and who takes those behind them, or null while it goes on. */
type Reader = (chunk: Buffer) => { readonly used: number; readonly next: Reader | null }

/**
 * Returns a check of what goes up on a connection whose protocol is unknown. It holds nothing back: what shows that a
 * ClientHello or a request is for another host is in the chunk that would complete it, and that one is refused.
 *
 * A first byte as of TLS makes it TLS: sni-mismatch, sni-missing, sni-invalid or no-client-hello. A first line that is a
 * request to any reader makes it requests, each judged: host-mismatch, method-refused, bad-request, bad-body. Anything else is let through.
 */
export function spokenCheck(target: EgressEndpoint, look: Look): (chunk: Uint8Array) => string | null {
  let reader: Reader = firstBytes({ ...target, look })
  return (chunk) => {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    try {
      while (rest.length > 0) {
        const { used, next } = reader(rest)
        if (next !== null) reader = next
        rest = rest.subarray(used)
      }
      return null
    } catch (error) {
      return Refusal.from(error).reason
    }
  }
}

const opaque: Reader = (chunk) => ({ used: chunk.length, next: null })

function firstBytes(target: Spoken): Reader {
  return (chunk) => ({ used: 0, next: chunk[0] === 0x16 ? hello(target) : firstLine(target) })
}

function hello({ host }: EgressEndpoint): Reader {
  const reader = new ClientHello()
  return (chunk) => {
    const name = reader.push(chunk)
    if (name !== null && name !== host) throw new Refusal('sni-mismatch')
    return { used: chunk.length, next: name === null ? null : opaque }
  }
}

/** What some reader takes for a space between the words of a request, or passes over around them */
const space = String.raw`[\0\t\x0b\x0c\r\x1c-\x20\x85\xa0]`
const begins = new RegExp(`^${space}*[!#$%&'*+.^_\`|~0-9A-Za-z-]{1,64}${space}`)
const ends = new RegExp(String.raw`${space}HTTP/[\x21-\x7e]{0,16}${space}*$`, 'i')
/** Of a line that is longer than a head may be, and before a return, so much is held against `ends` */
const endBytes = 96
const preface = 'PRI * HTTP/2.0\r\n'

/** True for a line, without its end, that is a request's first to any reader: a word, and at the end a version of HTTP. */
const isRequest = (line: string): boolean => begins.test(line) && ends.test(line)

/**
 * Reads one line that is not empty; HTTP servers skip those that are. What is a request to any reader is refused where it is not as
 * it should be. What went up of it is no request yet: servers read it when its end is there.
 */
function firstLine(target: Spoken): Reader {
  const head = requests(target)
  let line = ''
  /** Whether a line that is longer than a head may be begins as a request does; null while it is not as long */
  let isLongRequest: boolean | null = null
  return (chunk) => {
    const feed = chunk.indexOf(10)
    const used = feed < 0 ? chunk.length : feed + 1
    const before = line.length
    line += chunk.toString('latin1', 0, used)
    if (isLongRequest === null) refuseReturns(line, before)
    if (feed < 0) {
      if (line.length > headBytes) {
        isLongRequest ??= begins.test(line)
        line = line.slice(-endBytes)
      }
      return { used, next: null }
    }
    const said = line.slice(0, -1)
    if (isLongRequest !== null) {
      if (isLongRequest && ends.test(said)) throw new Refusal('bad-request')
      return { used, next: opaque }
    }
    if (/^\r*$/.test(said)) line = ''
    else if (line === preface || !isRequest(said)) return { used, next: opaque }
    else return { used, next: head(Buffer.from(line, 'latin1')) }
    return { used, next: null }
  }
}

/** A request whose lines end with carriage returns alone has no other end; `from` there is what was not looked at yet. */
function refuseReturns(line: string, from: number): void {
  for (let at = line.indexOf('\r', Math.max(0, from - 1)); at >= 0; at = line.indexOf('\r', at + 1)) {
    const isAlone = at + 1 < line.length && line[at + 1] !== '\n' && line[at + 1] !== '\r'
    const end = line.slice(Math.max(0, at - endBytes), at) // and no more: there may be as many as letters
    if (isAlone && ends.test(end) && begins.test(line)) throw new Refusal('bad-request')
  }
}

/** Returns what makes a reader of one request and of all behind it; it is given what was read of its head. */
const requests =
  (target: Spoken) =>
  (begun: Buffer): Reader => {
    const read = headReader()
    read(begun)
    return (chunk) => {
      const found = read(chunk)
      if (found === null) return { used: chunk.length, next: null }
      const framing = judgedFraming(found.value, target)
      const behind = upgrades(found.value) ? upgraded : another
      return { used: found.used, next: body(bodyOf(framing, target.look), () => behind(target)) }
    }
  }

/** Reads a body to its end, then what is `behind` it. */
function body(reader: ReturnType<typeof bodyOf>, behind: () => Reader): Reader {
  return (chunk) => {
    const used = reader.take(chunk)
    return { used, next: used < chunk.length ? behind() : null }
  }
}

const another = (target: Spoken): Reader => requests(target)(Buffer.alloc(0))

/** Frames begin with no letter, and a server that did not agree to them takes what does for the next request. */
function upgraded(target: Spoken): Reader {
  return (chunk) => {
    const [first = 0] = chunk
    const isText = first === 13 || first === 10 || (first >= 0x20 && first < 0x7f)
    return { used: 0, next: isText ? another(target) : firstLine(target) }
  }
}
