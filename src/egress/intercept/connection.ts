// One connection of a client, from its first byte to its last.
import type { Duplex } from 'node:stream'
import { whenLate } from '../../lib/deadline.ts'
import type { LoopTurns } from '../../lib/loop-turns.ts'
import type { Redactor, SwapPort } from '../../schema/credentials.ts'
import { type EgressTarget, type InterceptionLog, leaseEnded } from '../../schema/egress.ts'
import { exchange, type ExchangeContext } from './exchange.ts'
import type { InterceptLimits } from './limits.ts'
import { Refusal, refuse, refuseBare } from './refusal.ts'
import type { Signer } from './signer.ts'
import type { Handlers, ReadRequests } from './strict-server.ts'
import { tellingRedactor } from './telling-redactor.ts'
import { terminate } from './terminate.ts'
import { connectUpstream, type Dial, type HostTrust, Upstream } from './upstream.ts'
import { passUpgrade } from './upgrade.ts'

/** Made once: a reason that nobody reads need not be traced for each connection. */
const ended = new Error('the connection has ended')

/** What a client is given to close its end when it is told that it is over, ms; then it is closed for it. */
const closeMs = 1000
/** What an answer that is all written is given to go, ms */
const lastAnswerMs = 20

/** What a connection is served with. */
export interface ConnectionParts {
  readonly swap: SwapPort
  readonly redactor: Redactor
  readonly signer: Signer
  readonly trust: HostTrust
  readonly limits: InterceptLimits
  readonly readRequests: ReadRequests
  /** Of the sandbox: each handshake and each request takes one */
  readonly turns: LoopTurns
}

/**
 * Serves a client that was let through to a host that carries a credential; resolves when both ends are closed.
 *
 * One connection of the client is one upstream, dialled at the first request that may go up: no pool, nothing shared. When
 * all leases under which something was swapped have ended, both are cut: an idle client is told so, and given a second to
 * see it before its end is taken away.
 */
export const serveConnection = async (
  { swap, redactor, signer, trust, limits, readRequests, turns }: ConnectionParts,
  client: Duplex,
  target: EgressTarget,
  dial: Dial,
  log: InterceptionLog,
): Promise<void> => {
  const over = new AbortController()
  const end = (): void => over.abort(ended)
  const closed = new Promise<void>((resolve) => {
    if (client.destroyed) resolve()
    else client.once('close', resolve)
  }).then(end)
  client.on('error', () => client.destroy())
  const cut = (reason: string): void => {
    if (over.signal.aborted) return
    log.cut(reason)
    end()
    client.destroy()
  }
  const part = (): void => {
    if (over.signal.aborted) return
    log.cut(leaseEnded)
    end()
    isParting = true
    // Its client may have an answer whole that is not known here to have gone; half of one must not look whole
    if (waiting === 0) leave()
    else late = setTimeout(() => client.destroy(), lastAnswerMs)
  }
  /** Tells a client that waits for nothing that it is over. */
  const leave = (): void => {
    clearTimeout(late)
    late = setTimeout(() => client.destroy(), closeMs)
    stream.end()
  }

  const injections = swap.injections.filter(
    ({ inject, hosts }) =>
      inject === 'egress' && hosts.some(({ host, port }) => host === target.host && port === target.port),
  )
  let upstream: Promise<Upstream> | null = null
  const connectOnce = async (): Promise<Upstream> => {
    const isTls = target.grant.tls
    const socket = await connectUpstream(target, dial, isTls ? trust : null, limits.upstreamMs, over.signal)
    over.signal.addEventListener('abort', () => socket.destroy(), { once: true })
    if (over.signal.aborted) socket.destroy()
    return new Upstream(socket, limits, () => upstreamClosed())
  }
  const context: ExchangeContext = {
    target,
    head: {
      host: target.host,
      port: target.port,
      isTls: target.grant.tls,
      credentialHeaders: injections.flatMap(({ headers }) => headers),
      mayUpgrade: injections.some(({ websocket }) => websocket),
      mostHeaders: limits.headers,
    },
    fillsBodies: injections.some(({ body }) => body),
    swap,
    redactor: tellingRedactor(redactor, (credential) => log.redacted(credential)),
    limits,
    upstream: () => (upstream ??= connectOnce()),
    carry({ credential, until }) {
      log.swapped(credential)
      if (carried.has(until)) return
      const ended = (): void => {
        carried.delete(until)
        if (carried.size === 0) part()
      }
      carried.set(until, ended)
      if (until.aborted) ended()
      else until.addEventListener('abort', ended, { once: true })
    },
  }
  const carried = new Map<AbortSignal, () => void>()

  // Requests come in turn, however many a client sends ahead
  let waiting = 0
  let isClosing = false
  let stream = client
  let turn: Promise<void> = Promise.resolve()
  let quiet = (): void => undefined
  let late: NodeJS.Timeout | undefined
  let isParting = false
  const upstreamClosed = (): void => {
    isClosing = true
    if (waiting === 0 && !over.signal.aborted) leave()
  }
  const inTurn = (act: () => Promise<void>, failed: (refusal: Refusal) => void): void => {
    quiet()
    if (++waiting > limits.pipelined) {
      cut('pipelining')
      return
    }
    turn = takeTurn(turn, act, failed)
  }
  /** Whatever becomes of it: nobody waits for a turn before all are over, and what nobody waits for ends a daemon that fails. */
  const tell = (refusal: Refusal, failed: (refusal: Refusal) => void): void => {
    try {
      failed(refusal)
    } catch {
      client.destroy()
    }
  }
  const takeTurn = async (
    before: Promise<void>,
    act: () => Promise<void>,
    failed: (refusal: Refusal) => void,
  ): Promise<void> => {
    await before
    await turns.take()
    try {
      if (!isClosing && !over.signal.aborted) await act()
    } catch (error) {
      isClosing = true
      const refusal =
        error instanceof Refusal ? error : new Refusal(502, 'failed', 'the request could not be passed on')
      // Once it was cut, that this came to nothing is no news
      if (!over.signal.aborted) log.cut(refusal.reason)
      tell(refusal, failed)
    } finally {
      waiting--
      if (waiting === 0 && isParting) leave()
      if (waiting === 0 && !over.signal.aborted) {
        quiet = whenLate(limits.idleMs, () => cut('idle'))
        // Nothing more will be answered: after what was, it ends
        if (isClosing) stream.end(() => client.destroy())
      }
    }
  }

  try {
    if (target.grant.tls) {
      const context = await signer.contextFor(target.host)
      await turns.take()
      over.signal.throwIfAborted()
      stream = await terminate(client, target.host, context, limits.handshakeMs, over.signal)
    }
    const handlers: Handlers = {
      request: (given, response) =>
        inTurn(
          () => exchange(context, given, response),
          (refusal) => refuse(response, refusal),
        ),
      upgrade: (given, socket, ahead) =>
        inTurn(
          () => passUpgrade(context, given, socket, ahead),
          (refusal) => refuseBare(socket, refusal),
        ),
      malformed: (socket, refusal, unread) => {
        if (over.signal.aborted) return
        const leaked = swap.watch(target, 'passes')(unread)
        log.cut(leaked === null ? refusal.reason : `credential-${leaked}`)
        // In the middle of an answer it would become part of it
        if (waiting > 0) client.destroy()
        else refuseBare(socket, refusal)
      },
    }
    stream.once('close', () => client.destroy())
    quiet = whenLate(limits.handshakeMs, () => cut('head-late'))
    readRequests(stream, context.head.mayUpgrade, handlers)
    // Whoever read its first bytes has paused it
    stream.resume()
  } catch (error) {
    cut(error instanceof Refusal ? error.reason : 'failed')
  }
  await closed
  quiet()
  clearTimeout(late)
  // A lease may outlive thousands of connections
  for (const [until, ended] of carried) until.removeEventListener('abort', ended)
  await turn
}
