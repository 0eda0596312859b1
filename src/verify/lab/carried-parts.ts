// A credential in the other parts of a conversation: a query, a body, a websocket, and what the host answers.
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect as dial, type Socket } from 'node:net'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import { connect, createServer } from 'node:tls'
import { createInterceptor } from '../../egress/intercept/interceptor.ts'
import { createSigner } from '../../egress/intercept/signer.ts'
import { within } from '../../lib/deadline.ts'
import { newInstanceId } from '../../lib/ids.ts'
import { UndoStack } from '../../lib/undo-stack.ts'
import type { Injection, SandboxSecrets } from '../../schema/credentials.ts'
import { ampleMs } from './patience.ts'

const named = 'api.sallyport.test'
const greeting = 'the host says'

/** Why whoever puts the value in lets something through no further. */
const [elsewhere, noUpgrade] = ['credential-other-place', 'upgrade'] as const

/** The parts of a request in which an entry has its credential put. */
export type Parts = Pick<Injection, 'query' | 'body' | 'websocket'>

/** Who holds the credential: a sandbox whose entry names these parts, and that host, certified as that file says. */
export type HoldingParts = (
  host: { readonly host: string; readonly port: number; readonly caFile: string },
  parts: Parts,
  violated: (reason: string) => void,
) => SandboxSecrets

/** What the host heard and what the client did, until the end, and why it went no further where somebody said so. */
interface Said {
  readonly up: string
  readonly down: string
  readonly why: readonly string[]
}

/** Requests to that host at this port. */
const requestsAt = (port: number) => {
  const head = (method: string, path: string, ...fields: readonly string[]): string =>
    [`${method} ${path} HTTP/1.1`, `Host: ${named}:${port}`, ...fields, '', ''].join('\r\n')
  const plain = ['Content-Type: text/plain', 'Connection: close']
  return {
    get: (path: string): string => head('GET', path, 'Connection: close'),
    post: (words: string): string => head('POST', '/', `Content-Length: ${words.length}`, ...plain) + words,
    upgrade: head(
      'GET',
      '/',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
    ),
  }
}

/** A frame of text: a client's, masked by zeroes, or a host's. */
const frame = (text: string, by: 'client' | 'host'): string => {
  const length = String.fromCharCode(text.length | (by === 'client' ? 0x80 : 0))
  return `\x81${length}${by === 'client' ? '\0\0\0\0' : ''}${text}`
}

/**
 * Returns the parts in which the value, or what stands for it, came where it should not, or did not where it should. That nothing
 * came shows nothing by itself: whoever let it through no further must have said so. Throws where a conversation has no end.
 */
export const astrayInParts = async (
  folder: string,
  hold: HoldingParts,
  lease: (secrets: SandboxSecrets) => Promise<Disposable>,
  value: string,
): Promise<readonly string[]> => {
  const caFile = join(folder, `${newInstanceId()}.pem`)
  const signer = await createSigner('host', [named])
  const context = await signer.contextFor(named)
  await writeFile(caFile, signer.certificate)
  await using end = new UndoStack()
  end.defer(() => rm(caFile, { force: true }))
  let up = ''
  const server = createServer({ SNICallback: (_, done) => done(null, context) }, (socket) => {
    socket
      .on('error', () => socket.destroy())
      .once('data', (said: Buffer) => {
        const words = `${greeting} ${value}`
        if (said.includes('Upgrade: websocket'))
          socket.write(
            `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${frame(words, 'host')}`,
            'latin1',
          )
        else
          socket.end(
            `HTTP/1.1 200 OK\r\nContent-Length: ${words.length}\r\nConnection: close\r\n\r\n${words}`,
          )
      })
    socket.on('data', (said: Buffer) => (up += said.toString('latin1')))
  }).listen(0, '127.0.0.1')
  server.on('tlsClientError', () => undefined)
  end.defer(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const reach = async (): Promise<Socket> => {
    const socket = dial(port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }

  /** A sandbox whose entry has these parts, in a call: says something to the host, and more once that has answered. */
  const sandbox = async (parts: Parts) => {
    let why: string[] = []
    const secrets = end.use(
      hold({ host: named, port, caFile }, parts, (reason) => why.push(`credential-${reason}`)),
    )
    end.use(await lease(secrets))
    const instance = newInstanceId()
    const interceptor = await createInterceptor({ server: 'probes', instance, life: 'call', ...secrets })
    const grant = { host: named, port, address: null, private: true, tls: true, reason: 'a verification' }
    const target = { ...grant, grant, server: 'probes', instance, connection: 'e-0' }
    const log = {
      swapped: () => undefined,
      redacted: () => undefined,
      cut: (reason: string) => why.push(reason),
    }
    const say = async (text: string, afterwards: string | null = null): Promise<Said> => {
      up = ''
      why = []
      let down = ''
      const [client, ours] = duplexPair()
      // One end of such a pair does not see the other destroyed.
      ours.once('close', () => client.destroy())
      const over = interceptor.serve(ours, target, reach, log)
      const secured = connect({ socket: client, servername: named, ca: interceptor.certificate })
      const closed = new Promise((resolve) => secured.once('close', resolve))
      secured.on('error', () => secured.destroy()).write(text, 'latin1')
      secured.on('data', (said: Buffer) => {
        down += said.toString('latin1')
        if (afterwards === null || !down.includes(greeting)) return
        secured.write(afterwards, 'latin1')
        afterwards = null
      })
      const late = (): Error => new Error(`a conversation with the host was not over within ${ampleMs} ms`)
      try {
        await within(closed, ampleMs, late)
      } finally {
        secured.destroy()
        ours.destroy()
      }
      await over
      return { up, down, why }
    }
    return { say, placeholder: secrets.swap.placeholders[0] ?? '' }
  }

  const granted = await sandbox({ query: true, body: true, websocket: true })
  const plain = await sandbox({ query: false, body: false, websocket: false })
  const found: string[] = []
  const expects = (what: string, is: boolean): void => void (is || found.push(what))
  const isHere = ({ up }: Said): boolean => up.includes(value)
  const isStopped = (what: string, { up, why }: Said, word: string, isWhole = true): void => {
    if (isWhole && up !== '') found.push(`${what}: something`)
    else if (!why.includes(word)) found.push(`${what}: ${why.join(', ') || 'nothing'} in place of ${word}`)
  }
  const { get, post, upgrade } = requestsAt(port)
  const query = ({ placeholder }: typeof granted): string => get(`/?token=${placeholder}`)

  const inQuery = await granted.say(query(granted))
  expects('in a query that its entry names: not the value', isHere(inQuery))
  expects('in an answer: the value', !inQuery.down.includes(value))
  expects('in an answer: no answer', inQuery.down.includes(greeting))
  expects(
    'in a body that its entry names: not the value',
    isHere(await granted.say(post(granted.placeholder))),
  )
  isStopped('in a path', await granted.say(get(`/${granted.placeholder}`)), elsewhere)
  const told = await granted.say(upgrade, frame(`a ${granted.placeholder}`, 'client'))
  expects('in a websocket’s messages: the value', !told.down.includes(value))
  expects('in a websocket’s messages: no websocket', told.down.includes(greeting))
  expects('in what is said by websocket: it', !isHere(told) && !told.up.includes(granted.placeholder))
  isStopped('in what is said by websocket', told, elsewhere, false)

  isStopped('in a query that its entry does not name', await plain.say(query(plain)), elsewhere)
  const body = await plain.say(post(plain.placeholder))
  expects('in a body that its entry does not name: it', !isHere(body) && !body.up.includes(plain.placeholder))
  isStopped('in a body that its entry does not name', body, elsewhere, false)
  isStopped('in a websocket that its entry does not name', await plain.say(upgrade), noUpgrade)
  return found
}
