// The way out of one connection: judged by name, watch, address and first bytes, in this order, and only then dialled.
import type { Socket } from 'node:net'
import type {
  EgressEndpoint,
  EgressPolicy,
  EgressTarget,
  EgressWatch,
  Interceptor,
  Screen,
} from '../schema/egress.ts'
import { grantFor } from './allowlist.ts'
import { watchBytes } from './deadlines.ts'
import { dial } from './dial.ts'
import { expectHead, expectHello } from './first-bytes.ts'
import { connectAnswer } from './http-answer.ts'
import { bodyCheck } from './http-framing.ts'
import type { Head } from './http-head.ts'
import { forwarded, httpPort } from './http-request.ts'
import type { Passage } from './passage.ts'
import { placeholderElsewhere, Refusal } from './refusal.ts'
import { refuseStray } from './stray.ts'
import { resolve } from './resolve.ts'
import type { Lookup } from './resolve.ts'
import { tunnel } from './tunnel.ts'
import { spokenCheck } from './spoken.ts'
import type { Check } from './tunnel.ts'

/** What every connection of one door is judged by. */
export interface Judges {
  readonly policy: EgressPolicy
  readonly watch: EgressWatch
  readonly interceptor: Interceptor | null
  readonly screen: Screen | null
  readonly lookup: Lookup
}

/** How the client asked: with the bytes themselves, by CONNECT, or by a request that names its target. */
export type Asked =
  | { readonly how: 'bytes' }
  | { readonly how: 'connect' }
  | { readonly how: 'request'; readonly head: Head }

/** What goes up first, and what everything behind it is held to. */
interface Load {
  readonly first: Buffer
  readonly check: Check
}

/**
 * Carries one connection to its end. Throws a refusal where it must not or cannot be; whoever called ends the passage by it.
 */
export async function carry(
  judges: Judges,
  passage: Passage,
  target: EgressEndpoint,
  asked: Asked,
): Promise<void> {
  const { policy, watch, interceptor, lookup } = judges
  const { limits } = policy
  passage.asks(target.host, target.port)
  // 0. No placeholder in the name
  refuseStray(judges.screen, target.host, target)
  // 1. Name and port
  const grant = grantFor(policy.grants, target)
  // 2. Whether the doors stand open
  askWatch(watch, target)
  // 3. The address, once, so that a name that leads inwards is refused before the client is told to speak
  const isIntercepted = interceptor?.intercepts(target) === true
  const addresses = isIntercepted ? [] : await resolve(target, grant, lookup, passage.signal)
  // 4. The first bytes
  const speaksFirst = grant.tls || target.port === httpPort || isIntercepted
  if (asked.how === 'connect' && speaksFirst) greet(passage)
  if (grant.tls && asked.how === 'request') throw new Refusal('no-client-hello')
  const hello = grant.tls ? await expectHello(passage, limits.handshakeMs, judges.screen) : nothing
  const judged = {
    ...target,
    grant,
    server: policy.server,
    instance: policy.instance,
    connection: passage.connection,
  }
  if (isIntercepted) {
    passage.opening.putBack(hello)
    return intercept(judges, interceptor, passage, judged, asked)
  }
  const screen = screenOf(judges.screen, target)
  const load = grant.tls ? looked(hello, screen) : await plain(judges, passage, target, asked, screen)
  // 5. The judged address, dialled as it was judged
  askWatch(watch, target)
  const { socket, address } = await dial(addresses, target.port, {
    ms: limits.connectMs,
    signal: passage.signal,
  })
  passage.opened(socket, address)
  if (asked.how === 'connect' && !speaksFirst) greet(passage)
  passage.awaitsAnswer = false
  // Its record is written at the end of this turn, and before a byte goes up
  await Promise.resolve()
  // 6. Bytes
  await tunnel(passage, socket, { limits, ...load })
}

function askWatch(watch: EgressWatch, target: EgressEndpoint): void {
  const verdict = watch.mayConnect(target)
  if (!verdict.open) throw new Refusal(verdict.reason)
}

function greet(passage: Passage): void {
  passage.client.write(connectAnswer)
  passage.awaitsAnswer = false
}

/** A placeholder of a credential has no business in a connection that nobody may swap it in. */
function screenOf(screen: Screen | null, target: EgressEndpoint): Check {
  if (screen === null) return () => null
  const isClean = screen.stream(target)
  return (chunk) => (isClean(chunk) ? null : placeholderElsewhere)
}

const nothing = Buffer.alloc(0)

const opaque = (check: Check): Load => ({ first: nothing, check })

/** What was read already, and is held to the same as what comes. */
function looked(first: Buffer, check: Check): Load {
  const held = check(first)
  if (held !== null) throw new Refusal(held)
  return { first, check }
}

/**
 * On port 80, and where a request named its target: one request for this target, and nothing behind it. Elsewhere nobody
 * knows what will be spoken, and what can be read of it must be for this target.
 */
async function plain(
  { policy, screen: screenAll }: Judges,
  passage: Passage,
  target: EgressEndpoint,
  asked: Asked,
  screen: Check,
): Promise<Load> {
  if (asked.how !== 'request' && target.port !== httpPort) {
    const isSpoken = spokenCheck(target, screenOf(screenAll, target))
    return opaque((chunk) => screen(chunk) ?? isSpoken(chunk))
  }
  passage.awaitsAnswer = true
  const head = asked.how === 'request' ? asked.head : await expectHead(passage, policy.limits.handshakeMs)
  const request = forwarded(head, target)
  refuseStray(screenAll, request.dropped, target)
  const first = Buffer.from(request.head, 'latin1')
  const isBody = bodyCheck(request.framing, screenOf(screenAll, target))
  const { check } = looked(first, screen)
  return { first, check: (chunk) => check(chunk) ?? isBody(chunk) }
}

/** Hands the client's stream over; what it dials is judged like everything else, each time. */
async function intercept(
  { policy, watch, screen, lookup }: Judges,
  interceptor: Interceptor,
  passage: Passage,
  target: EgressTarget,
  asked: Asked,
): Promise<void> {
  const { limits } = policy
  passage.awaitsAnswer = false
  if (asked.how === 'request') {
    const { head, dropped } = forwarded(asked.head, target)
    refuseStray(screen, dropped, target)
    passage.client.unshift(Buffer.from(head, 'latin1'))
  }
  passage.isIntercepted = true
  const settle = watchBytes(passage, limits)
  const connect = async (signal: AbortSignal): Promise<Socket> => {
    askWatch(watch, target)
    // It ends with the client, which ends with the passage
    const addresses = await resolve(target, target.grant, lookup, signal)
    const { socket, address } = await dial(addresses, target.port, { ms: limits.connectMs, signal })
    passage.opened(socket, address)
    return socket
  }
  const reach = async (signal: AbortSignal): Promise<Socket> => {
    try {
      return await connect(signal)
    } catch (error) {
      passage.log.cut(Refusal.from(error).reason)
      throw error
    }
  }
  await interceptor.serve(passage.client, target, reach, passage.log)
  settle()
  passage.end()
}
