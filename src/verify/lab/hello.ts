// TLS ClientHellos that no client would send: for several names or for none, in pieces, with more behind them.

const vector = (width: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts)
  const length = Buffer.alloc(width)
  length.writeUIntBE(body.length, 0, width)
  return Buffer.concat([length, body])
}

const text = (name: string): Buffer => Buffer.concat([Buffer.from([0]), vector(2, Buffer.from(name))])

/** A name of a kind that nobody uses: 0 is a host’s. */
const otherKind = (name: string): Buffer => {
  const entry = text(name)
  entry[0] = 1
  return Buffer.concat([Buffer.from([0, 0]), vector(2, vector(2, entry))])
}

const serverName = (names: readonly string[]): Buffer =>
  Buffer.concat([Buffer.from([0, 0]), vector(2, vector(2, ...names.map(text)))])

/** Its handshake message: one `server_name` extension for each list of names. */
const message = (lists: readonly (readonly string[])[]): Buffer => messageWith(lists.map(serverName))

const messageWith = (extensions: readonly Uint8Array[]): Buffer =>
  Buffer.concat([
    Buffer.from([1]),
    vector(
      3,
      Buffer.from([3, 3]),
      Buffer.alloc(32, 9),
      vector(1),
      vector(2, Buffer.from([0x13, 0x01])),
      vector(1, Buffer.from([0])),
      vector(2, ...extensions),
    ),
  ])

const record = (bytes: Uint8Array): Buffer => Buffer.concat([Buffer.from([22, 3, 1]), vector(2, bytes)])

/** One of which nobody could ask more. */
export const plainHello = (name: string): Buffer => record(message([[name]]))

/** Hellos of which no two readers need understand the same. `own` is the host that was granted. */
export const oddHellos = (own: string, other: string): Readonly<Record<string, Buffer>> => {
  const [mine, theirs] = [message([[own]]), message([[other]])]
  return {
    'a hello for no name': record(message([])),
    'a hello for two names': record(message([[own, other]])),
    'a hello for a name of another kind': record(messageWith([otherKind(own)])),
    'a hello that names twice': record(message([[own], [other]])),
    'a hello in pieces, for another': Buffer.concat([
      record(theirs.subarray(0, 40)),
      record(theirs.subarray(40)),
    ]),
    'a hello with another in its record': record(Buffer.concat([mine, theirs])),
  }
}
