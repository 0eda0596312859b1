// A connection that becomes a websocket, where the entry lists that.
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { LeakWatch } from '../../schema/credentials.ts'
import { judgeAnswer, redacting } from './answer.ts'
import { type ExchangeContext, judgedHead } from './exchange.ts'
import { redactingFrames, watchedFrames } from './frames.ts'
import { Refusal } from './refusal.ts'
import type { Header } from './request-head.ts'
import { swapHead } from './swap-head.ts'
import { lookingInto, packedWatch } from './unnamed-coding.ts'

/**
 * Passes an upgrade on and, once the host agrees, the bytes of both sides. Nothing is swapped in frames: a
 * placeholder in one ends the connection, and what the host sends is redacted. Compression is not offered to the host.
 */
export const passUpgrade = async (
  context: ExchangeContext,
  given: IncomingMessage,
  client: Duplex,
  ahead: Buffer,
): Promise<void> => {
  const head = judgedHead(context, given)
  if (!head.isUpgrade) throw new Refusal(403, 'upgrade', 'this upgrade is not granted')
  if (ahead.length > 0) throw new Refusal(400, 'malformed', 'bytes came before the upgrade was agreed on')
  const { path, headers, swapped } = swapHead(context.swap, context.target, head)
  for (const it of swapped) context.carry(it)
  const upstream = await context.upstream()

  const up = upstream.request(head.method, path, headers)
  up.end()
  const { answer, socket, first } = await outcomeOf(up)
  const { redactor, limits } = context
  const judged = judgeAnswer(answer, redactor, socket === null, limits.headers)
  if (socket === null) {
    const framed = judged.headers.filter(([name]) => name.toLowerCase() !== 'content-length')
    client.write(written(judged.status, judged.message, [...framed, ['Connection', 'close']]))
    const look = lookingInto(packedWatch(redactor.mask()))
    const mask = redacting(redactor.mask())
    await (judged.decoder === null
      ? pipeline(answer, look, mask, client)
      : pipeline(answer, judged.decoder, look, mask, client))
    return
  }
  if (judged.headers.some(([name]) => name.toLowerCase() === 'sec-websocket-extensions'))
    throw new Refusal(502, 'upgrade', 'the host answered with an extension that it was not offered')
  client.write(
    written(101, judged.message, [...judged.headers, ['Connection', 'Upgrade'], ['Upgrade', 'websocket']]),
  )
  // Two pipelines listen to each, which is more than Node takes for no leak
  for (const end of [client, socket]) end.setMaxListeners(30)
  const mask = redactingFrames(redactor)
  // What came with the answer may fail it before the pipeline listens, or behind it where the client has gone: whoever waits is told.
  mask.on('error', () => undefined)
  if (first.length > 0) mask.write(first)
  const watch = (): LeakWatch => context.swap.watch(context.target, 'counts')
  const looked = watchedFrames([watch(), watch()])
  await Promise.all([pipeline(client, looked, socket), pipeline(socket, mask, client)])
}

interface Outcome {
  readonly answer: IncomingMessage
  /** Null where the host did not agree */
  readonly socket: Duplex | null
  readonly first: Buffer
}

const outcomeOf = (up: ClientRequest): Promise<Outcome> => {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
  const refused = (): void =>
    reject(new Refusal(502, 'answer', 'the host gave no answer that can be passed on'))
  up.on('error', refused)
  up.once('close', refused)
  up.on('response', (answer) => resolve({ answer, socket: null, first: Buffer.alloc(0) }))
  up.on('upgrade', (answer, socket, first) => {
    if (answer.statusCode === 101 && answer.headers.upgrade?.toLowerCase() === 'websocket')
      resolve({ answer, socket, first })
    else {
      socket.destroy()
      refused()
    }
  })
  return promise
}

const written = (status: number, message: string, headers: readonly Header[]): Buffer =>
  Buffer.from(
    `HTTP/1.1 ${status} ${message}\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
    'latin1',
  )
