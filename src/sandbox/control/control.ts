// The control channel between the supervisor and sallyport-init, byte for byte as sandbox/README.md draws it.
import { SallyportError } from '../../errors.ts'

/** The longest payload that either side accepts, bytes. */
export const maxPayloadBytes = 1 << 20

/** What the supervisor may say: first to `outer`, then to `init`. */
export type Order =
  | { readonly type: 'cgroup'; readonly file: string }
  | { readonly type: 'mount'; readonly source: string; readonly staging: string }
  | { readonly type: 'ids'; readonly uid: number; readonly gid: number }
  | { readonly type: 'cover'; readonly path: string; readonly isFolder: boolean }
  | { readonly type: 'tool'; readonly path: string }
  | { readonly type: 'arg'; readonly value: string }
  | { readonly type: 'data'; readonly bytes: Uint8Array }
  | { readonly type: 'exec' }
  | { readonly type: 'target'; readonly path: string }
  | { readonly type: 'covered' }
  | { readonly type: 'door'; readonly path: string; readonly proxyPort: number; readonly pool: number }
  | { readonly type: 'name'; readonly host: string; readonly port: number }
  | { readonly type: 'watched'; readonly filter: Uint8Array }
  | { readonly type: 'report' }
  | { readonly type: 'argv'; readonly value: string }
  | { readonly type: 'env'; readonly name: string; readonly value: string }
  | { readonly type: 'file'; readonly mode: number; readonly path: string; readonly content: Uint8Array }
  | { readonly type: 'limit'; readonly resource: number; readonly soft: bigint; readonly hard: bigint }
  | { readonly type: 'counter'; readonly name: string; readonly value: bigint }
  | { readonly type: 'cwd'; readonly path: string }
  | { readonly type: 'options'; readonly oneExec: boolean; readonly eofMs: number; readonly termMs: number }
  | { readonly type: 'go'; readonly program: string }
  | { readonly type: 'terminate' }
  | { readonly type: 'signal'; readonly signal: number }
  | { readonly type: 'kill' }

/** What a path of the sandbox is, as init sees it; device and inode are 0 where it is absent. */
export interface TargetReport {
  readonly dev: bigint
  readonly ino: bigint
  readonly errno: number
}

/** What init says. */
export type Report =
  | { readonly type: 'ready'; readonly targets: readonly TargetReport[] }
  | { readonly type: 'started'; readonly pid: number }
  | {
      readonly type: 'exited'
      readonly code: number
      readonly signal: number
      readonly userUs: bigint
      readonly systemUs: bigint
      readonly peakRssBytes: bigint
    }
  | { readonly type: 'failed'; readonly errno: number; readonly step: string; readonly object: string }

/** A frame before anything is known of its meaning. */
export interface Frame {
  readonly type: string
  readonly payload: Buffer
}

/** Returns the bytes of one frame. Throws ERR_INTERNAL where the payload is longer than the receiver accepts. */
export const encodeFrame = (type: string, ...parts: readonly Uint8Array[]): Buffer => {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  if (length > maxPayloadBytes)
    throw new SallyportError(
      'ERR_SANDBOX_SETUP',
      `the sandbox's ${type} frame holds ${length} bytes, ${maxPayloadBytes} is the most; shorten the arguments or files`,
      { step: 'plan', frame: type, bytes: length },
    )
  const head = Buffer.alloc(5)
  head.write(type, 0, 1, 'latin1')
  head.writeUInt32LE(length, 1)
  return Buffer.concat([head, ...parts])
}

/** Returns the bytes of one order. Throws ERR_SANDBOX_SETUP where a string holds a NUL, which would end it early. */
export const encodeOrder = (order: Order): Buffer => {
  switch (order.type) {
    case 'cgroup':
      return encodeFrame('c', text(order.file))
    case 'mount':
      return encodeFrame('m', text(order.source), text(order.staging))
    case 'ids':
      return encodeFrame('u', u32(order.uid), u32(order.gid))
    case 'cover':
      return encodeFrame('v', u32(order.isFolder ? 1 : 0), text(order.path))
    case 'tool':
      return encodeFrame('b', text(order.path))
    case 'arg':
      return encodeFrame('a', text(order.value))
    case 'data':
      return encodeFrame('d', order.bytes)
    case 'exec':
      return encodeFrame('x')
    case 'target':
      return encodeFrame('t', text(order.path))
    case 'covered':
      return encodeFrame('C')
    case 'door':
      return encodeFrame('D', text(order.path), u32(order.proxyPort), u32(order.pool))
    case 'name':
      return encodeFrame('N', u32(order.port), text(order.host))
    case 'watched':
      return encodeFrame('W', order.filter)
    case 'report':
      return encodeFrame('r')
    case 'argv':
      return encodeFrame('g', text(order.value))
    case 'env':
      return encodeFrame('e', text(`${order.name}=${order.value}`))
    case 'file':
      return encodeFrame('f', u32(order.mode), text(order.path), order.content)
    case 'limit':
      return encodeFrame('l', u32(order.resource), u64(order.soft), u64(order.hard))
    case 'counter':
      return encodeFrame('n', text(order.name), u64(order.value))
    case 'cwd':
      return encodeFrame('w', text(order.path))
    case 'options':
      return encodeFrame('o', u32(order.oneExec ? 1 : 0), u32(order.eofMs), u32(order.termMs))
    case 'go':
      return encodeFrame('G', text(order.program))
    case 'terminate':
      return encodeFrame('T')
    case 'signal':
      return encodeFrame('s', u32(order.signal))
    case 'kill':
      return encodeFrame('K')
  }
}

/** Cuts a byte stream into frames, whatever the chunks; holds at most one frame and one chunk. */
export class FrameReader {
  #held: Buffer = Buffer.alloc(0)

  /** Returns the frames that the chunk completes. Throws ERR_SANDBOX_SETUP on a frame over the bound. */
  push(chunk: Buffer): Frame[] {
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const frames: Frame[] = []
    while (rest.length >= 5) {
      const length = rest.readUInt32LE(1)
      if (length > maxPayloadBytes)
        throw malformed(`a frame announces ${length} bytes, ${maxPayloadBytes} is the most`)
      if (rest.length < 5 + length) break
      frames.push({ type: rest.toString('latin1', 0, 1), payload: rest.subarray(5, 5 + length) })
      rest = rest.subarray(5 + length)
    }
    // A copy, so that a few held bytes do not keep the whole chunk alive.
    this.#held = Buffer.from(rest)
    return frames
  }
}

/** Returns what init said. Throws ERR_SANDBOX_SETUP on an unknown type or a payload of another shape. */
export const decodeReport = ({ type, payload }: Frame): Report => {
  switch (type) {
    case 'R':
      return { type: 'ready', targets: targetReports(payload) }
    case 'S':
      expectBytes(type, payload, 4)
      return { type: 'started', pid: payload.readUInt32LE(0) }
    case 'E':
      expectBytes(type, payload, 32)
      return {
        type: 'exited',
        code: payload.readUInt32LE(0),
        signal: payload.readUInt32LE(4),
        userUs: payload.readBigUInt64LE(8),
        systemUs: payload.readBigUInt64LE(16),
        peakRssBytes: payload.readBigUInt64LE(24),
      }
    case 'X': {
      const [step, object, ...more] = payload.toString('utf8', 4).split('\0')
      if (
        payload.length < 6 ||
        step === undefined ||
        object === undefined ||
        more.length !== 1 ||
        more[0] !== ''
      )
        throw malformed('an X frame is not an errno and two strings')
      return { type: 'failed', errno: payload.readUInt32LE(0), step, object }
    }
    default:
      throw malformed(`type ${JSON.stringify(type)} is unknown`)
  }
}

const targetReports = (payload: Buffer): TargetReport[] => {
  if (payload.length % 20 !== 0)
    throw malformed(`an R frame has ${payload.length} bytes, not a multiple of 20`)
  return Array.from({ length: payload.length / 20 }, (_, index) => ({
    dev: payload.readBigUInt64LE(index * 20),
    ino: payload.readBigUInt64LE(index * 20 + 8),
    errno: payload.readUInt32LE(index * 20 + 16),
  }))
}

const expectBytes = (type: string, payload: Buffer, bytes: number): void => {
  if (payload.length !== bytes)
    throw malformed(`an ${type} frame has ${payload.length} bytes, expected ${bytes}`)
}

const malformed = (what: string): SallyportError =>
  new SallyportError('ERR_SANDBOX_SETUP', `the sandbox's control channel is malformed: ${what}`, {
    step: 'gate',
  })

const text = (value: string): Buffer => {
  if (value.includes('\0'))
    throw new SallyportError(
      'ERR_SANDBOX_SETUP',
      `a NUL stands in ${JSON.stringify(value.slice(0, 80))}; remove it`,
      {
        step: 'plan',
      },
    )
  return Buffer.from(`${value}\0`)
}

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const u64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}
