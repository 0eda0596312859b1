// One request of a client and the host's answer to it.
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import type { Redactor, SwapPort } from '../../schema/credentials.ts'
import type { EgressEndpoint } from '../../schema/egress.ts'
import { judgeAnswer, judgeTrailers } from './answer.ts'
import { pour } from './pour.ts'
import { PlaceholderStream, writerFor } from './body-swap.ts'
import type { InterceptLimits } from './limits.ts'
import { credentialRefused, Refusal } from './refusal.ts'
import { type Header, judgeRequest, type RequestHead, type HeadTarget } from './request-head.ts'
import {
  type Exchange,
  exchangeFor,
  forTheWhole,
  screenRefused,
  swapHead,
  type Swapped,
} from './swap-head.ts'
import type { Upstream } from './upstream.ts'

/** What the exchanges of one connection share. */
export interface ExchangeContext {
  readonly target: EgressEndpoint
  readonly head: HeadTarget
  /** Whether an entry swaps in bodies for this target */
  readonly fillsBodies: boolean
  readonly swap: SwapPort
  readonly redactor: Redactor
  readonly limits: InterceptLimits
  /** The connection upstream, made when first needed */
  upstream(): Promise<Upstream>
  /** Notes what was swapped: the connection ends with the leases of all of it */
  carry(swapped: Swapped): void
}

/**
 * Judges a request, swaps, sends it up, and passes the answer down as it comes. Throws a Refusal for what is not to be
 * answered by the host. In this order:
 * 1. the head has one meaning, and names the host that was judged;
 * 2. placeholders and secrets in it are found, and swapped or refused;
 * 3. the host is connected to, and its certificate verified;
 * 4. head and body go up, the body looked through and swapped as it passes;
 * 5. the answer comes down, decoded and masked.
 * A lease that ends at any point has both connections cut, so that what was swapped under it goes nowhere.
 */
export const exchange = async (
  context: ExchangeContext,
  given: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const head = judgedHead(context, given)
  const { path, headers, swapped } = swapHead(context.swap, context.target, head)
  for (const it of swapped) context.carry(it)
  const upstream = await context.upstream()

  const { up, sent } = await sendUp(context, upstream, { ...head, path, headers }, given)
  up.on('continue', () => response.writeContinue())
  try {
    const answer = await Promise.race([answerOf(up), failureOf(sent)])
    await passDown(context, answer, given, response, sent)
  } catch (error) {
    up.destroy()
    throw error instanceof Refusal
      ? error
      : new Refusal(502, 'answer', 'the host gave no answer that can be passed on')
  }
  // The host answered before it had it all: what is still to come would be taken for the next request
  if (!given.complete) given.destroy()
}

/** The head that may go up; throws a Refusal for what may not, and tells of what is in that. */
export const judgedHead = ({ swap, target, head }: ExchangeContext, given: IncomingMessage): RequestHead => {
  const read = headOf(given)
  try {
    return judgeRequest(read, head)
  } catch (error) {
    screenRefused(swap, target, read)
    throw error
  }
}

/** What node:http read, as it is judged. */
const headOf = ({ method = '', url = '', httpVersion, rawHeaders }: IncomingMessage) => ({
  method,
  url,
  httpVersion,
  rawHeaders,
})

interface Sending {
  readonly up: ClientRequest
  /** Rejects with a Refusal where the body holds what it may not */
  readonly sent: Promise<void>
}

const sendUp = async (
  context: ExchangeContext,
  upstream: Upstream,
  head: RequestHead,
  given: IncomingMessage,
): Promise<Sending> => {
  const valueOf = (name: string): string | undefined =>
    head.headers.find(([it]) => it.toLowerCase() === name)?.[1]
  const begin = (headers: readonly Header[]): ClientRequest =>
    upstream.request(head.method, head.path, headers)
  const length = valueOf('content-length')
  if (length === undefined && !head.isChunked) {
    const isBare = /^(GET|HEAD|DELETE|OPTIONS)$/.test(head.method)
    const up = begin(isBare ? head.headers : [...head.headers, ['Content-Length', '0']])
    up.end()
    return { up, sent: Promise.resolve() }
  }

  const swapped: Swapped[] = []
  const exchangeOne = exchangeFor(context.swap, context.target, swapped)
  // A compressed body is left alone: what is in it stands for nothing up there
  const isPlain = valueOf('content-encoding') === undefined
  const mayFill = context.fillsBodies && isPlain
  const body = screened(
    context,
    given,
    isPlain,
    exchangeOne,
    writerFor(valueOf('content-type') ?? ''),
    swapped,
  )
  if (!mayFill) return sending(begin(head.headers), body)
  // What is swapped in it shows when the head is gone
  const whole = forTheWhole(head.headers)
  if (length === undefined) return sending(begin(whole), body)
  const rest = whole.filter(([name]) => name.toLowerCase() !== 'content-length')
  if (Number(length) > context.limits.countedBodyBytes)
    return sending(begin([...rest, ['Transfer-Encoding', 'chunked']]), body)
  if (valueOf('expect') !== undefined) given.socket.write('HTTP/1.1 100 Continue\r\n\r\n')
  const parts: Buffer[] = []
  for await (const part of body) parts.push(part)
  const bytes = Buffer.concat(parts)
  const counted = rest.filter(([name]) => name.toLowerCase() !== 'expect')
  return sending(begin([...counted, ['Content-Length', String(bytes.length)]]), [bytes])
}

const sending = (up: ClientRequest, body: AsyncIterable<Buffer> | Iterable<Buffer>): Sending => {
  const sent = (async () => {
    for await (const part of body) {
      if (up.destroyed) return
      if (part.length > 0) await flushed(up, part)
    }
    up.end()
  })()
  // Whoever waits for the answer looks at it; until then it must not count as forgotten
  sent.catch(() => up.destroy())
  return { up, sent }
}

/** One piece at a time: what a client sends meanwhile, letter by letter maybe, comes together in the next. */
const flushed = (up: ClientRequest, part: Buffer): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      up.off('close', done)
      resolve()
    }
    up.once('close', done)
    up.write(part, done)
  })

async function* screened(
  context: ExchangeContext,
  given: IncomingMessage,
  isPlain: boolean,
  exchangeOne: Exchange,
  write: (value: string) => string,
  swapped: Swapped[],
): AsyncGenerator<Buffer> {
  const { swap, target } = context
  const watch = swap.watch(target, 'passes')
  const stream = new PlaceholderStream(swap.placeholders, (placeholder) => {
    const value = exchangeOne(placeholder, { in: isPlain ? 'body' : 'elsewhere' })
    for (const it of swapped.splice(0)) context.carry(it)
    return write(value)
  })
  const look = (bytes: Uint8Array): void => {
    const leaked = watch(bytes)
    if (leaked !== null) throw credentialRefused(`credential-${leaked}`)
  }
  for await (const chunk of given as AsyncIterable<Buffer>) {
    look(chunk)
    yield stream.push(chunk)
  }
  // Trailers go nowhere; what is in them is told all the same
  const trailers = given.rawTrailers.join('\n')
  look(Buffer.from(trailers, 'latin1'))
  for (const placeholder of swap.placeholders)
    if (trailers.includes(placeholder)) exchangeOne(placeholder, { in: 'elsewhere' })
  yield stream.flush()
}

const answerOf = (up: ClientRequest): Promise<IncomingMessage> => {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  up.on('response', resolve)
  up.on('error', reject)
  up.once('close', () => reject(new Error('closed')))
  return promise
}

const failureOf = async (sent: Promise<void>): Promise<never> => {
  await sent
  return new Promise(() => undefined)
}

const passDown = async (
  { redactor, limits }: ExchangeContext,
  answer: IncomingMessage,
  given: IncomingMessage,
  response: ServerResponse,
  sent: Promise<void>,
): Promise<void> => {
  const status = answer.statusCode ?? 0
  const hasBody = given.method !== 'HEAD' && status !== 204 && status !== 304
  const { message, headers, decoder, isLast } = judgeAnswer(answer, redactor, hasBody, limits.headers)
  const mustEnd = isLast || !given.complete
  response.sendDate = false
  const all: readonly Header[] = mustEnd ? [...headers, ['Connection', 'close']] : headers
  response.writeHead(
    status,
    message,
    all.flatMap(([name, value]) => [name, value]),
  )
  const refusedBody = sent.then(
    () => new Promise<never>(() => undefined),
    (error: unknown) => {
      if (error instanceof Refusal) throw error
      return new Promise<never>(() => undefined)
    },
  )
  const body = decoder === null ? answer : answer.pipe(decoder)
  if (decoder !== null)
    answer
      .on('error', (error) => decoder.destroy(error))
      .once('close', () => {
        if (!answer.readableEnded) decoder.destroy(new Error('broken off'))
      })
  const trailers = (): readonly Header[] => judgeTrailers(answer, redactor)
  const passed = pour(body, redactor, response, trailers)
  await Promise.race([passed, refusedBody])
}
