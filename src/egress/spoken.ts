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
 * A first byte as of TLS makes it TLS: sni-mismatch, sni-missing, sni-invalid or no-client-hello. A first line that names a version
 * of HTTP makes it requests, each judged: host-mismatch, method-refused, bad-request, bad-body. Anything else is let through.
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

/** What makes a line one of HTTP to some reader, whatever stands before it or behind: some take letters for spaces that are none */
const version = /HTTP\/[0-9]/i
/** As long as that, less one: it may come in two pieces */
const versionAhead = 'HTTP/'.length
const preface = 'PRI * HTTP/2.0\r\n'

/**
 * Reads one line that is not empty; HTTP servers skip those that are. One that names a version of HTTP is a request, which is
 * refused where it is not as it should be. What went up of it is no request yet: servers read it when its end is there.
 */
function firstLine(target: Spoken): Reader {
  const head = requests(target)
  let line = ''
  let isLong = false
  let isRequest = false
  return (chunk) => {
    const feed = chunk.indexOf(10)
    const used = feed < 0 ? chunk.length : feed + 1
    const fresh = line.slice(-versionAhead) + chunk.toString('latin1', 0, used)
    line += chunk.toString('latin1', 0, used)
    isRequest ||= version.test(fresh)
    if (isRequest && (isLong || /\r(?![\r\n]|$)/.test(fresh))) throw new Refusal('bad-request')
    if (feed < 0) {
      if (line.length > headBytes) {
        isLong = true
        line = line.slice(-versionAhead)
      }
      return { used, next: null }
    }
    if (!isLong && /^\r?\n$/.test(line)) line = ''
    else if (!isRequest || line === preface) return { used, next: opaque }
    else return { used, next: head(Buffer.from(line, 'latin1')) }
    return { used, next: null }
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
