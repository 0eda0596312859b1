// Queries and answers of DNS, built and read by hand: a fault of the resolver must not hide in a library that forgives it.

/** Types that tests ask for. */
export const types = {
  A: 1,
  NS: 2,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SVCB: 64,
  HTTPS: 65,
  AXFR: 252,
  ANY: 255,
} as const

/** The wire form of a name; labels as they are given, so that they may hold anything. */
export const wireName = (...labels: readonly (string | Uint8Array)[]): Buffer =>
  Buffer.concat([
    ...labels.flatMap((label) => {
      const bytes = typeof label === 'string' ? Buffer.from(label, 'latin1') : label
      return [Buffer.of(bytes.length), bytes]
    }),
    Buffer.of(0),
  ])

const u16 = (value: number): Buffer => Buffer.of(value >> 8, value & 255)

export interface QueryParts {
  readonly id?: number
  readonly flags?: number
  readonly counts?: readonly [questions: number, answers: number, authorities: number, additional: number]
  readonly class?: number
  /** Behind the question */
  readonly rest?: Uint8Array
}

/** One query for a name: a dotted one, or its wire form. */
export const query = (name: string | Buffer, type: number, parts: QueryParts = {}): Buffer => {
  const { id = 0x1234, flags = 0x0100, counts = [1, 0, 0, 0], rest = Buffer.alloc(0) } = parts
  const wire = typeof name === 'string' ? wireName(...name.split('.').filter((label) => label !== '')) : name
  return Buffer.concat([
    u16(id),
    u16(flags),
    ...counts.map(u16),
    wire,
    u16(type),
    u16(parts.class ?? 1),
    rest,
  ])
}

/** An OPT record of EDNS. */
export const edns = (version = 0, payload = 4096): Buffer =>
  Buffer.concat([Buffer.of(0), u16(41), u16(payload), Buffer.of(0, version, 0, 0), u16(0)])

const codes = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED']

/** What says for how long there is nothing: an SOA of the root, 5 s for itself and for denials. */
const denial = Buffer.from(
  '00 0006 0001 00000005 0016 00 00 00000001 00000005 00000005 00000005 00000005'.replaceAll(' ', ''),
  'hex',
)

/** What an answer says, in one line: code, EDNS and SOA where they are there, the address. */
export const read = (hex: string | null): string => {
  if (hex === null) return 'silence'
  const bytes = Buffer.from(hex, 'hex')
  if (bytes.length > 512) return `${bytes.length} bytes`
  const [questions, answers, authorities, additional] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at))
  const extended = additional === 1 ? (bytes.at(-6) ?? 0) << 4 : 0
  const code = (bytes.readUInt8(3) & 15) | extended
  const address =
    answers === 1 ? ` ${[...bytes.subarray(-4 - (additional === 1 ? 11 : 0)).subarray(0, 4)].join('.')}` : ''
  const ends = bytes.length - (additional === 1 ? 11 : 0)
  const isDenial = authorities === 1 && bytes.subarray(ends - denial.length, ends).equals(denial)
  const isAnswer =
    (bytes.readUInt8(2) & 0x80) !== 0 && (authorities === 0 || isDenial) && (questions ?? 0) <= 1
  return `${isAnswer ? '' : 'odd '}${codes[code] ?? code}${additional === 1 ? ' EDNS' : ''}${isDenial ? ' SOA' : ''}${address}`
}
