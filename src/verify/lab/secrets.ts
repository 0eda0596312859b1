// A credential of a verification's own, held as any other: what a server has in its place, and what that stands for where.
import { once } from 'node:events'
import { SallyportError } from '../../errors.ts'
import { createBroker } from '../../credentials/broker.ts'
import { within } from '../../lib/deadline.ts'
import { newInstanceId } from '../../lib/ids.ts'
import { late } from '../../lib/late.ts'
import { findInitBinary } from '../../sandbox/init-binary.ts'
import type {
  CredentialViolation,
  Injection,
  Lease,
  SandboxSecretsRequest,
  SwapPlace,
} from '../../schema/credentials.ts'
import type { EgressEndpoint, Screen } from '../../schema/egress.ts'
import { ampleMs } from './patience.ts'

// HTTP, TLS and what makes certificates take 100 ms to load: a profile without a network is verified without.
const certifying = ['reflect-metadata', '@peculiar/x509']
const onTheWay = late(() => import('./carried.ts'), certifying)
const inItsParts = late(() => import('./carried-parts.ts'), certifying)

const api: EgressEndpoint = { host: 'api.sallyport.test', port: 443 }
const deadlineMs = 600_000
/** A lease that ends by itself */
const briefMs = 20
/** Leases that come and go while another waits */
const turns = 5

/** One credential that a call of this moment may use, and how it looks from the sandbox that may. */
export interface CanarySecret extends Disposable {
  /** What that sandbox has in its place, and what another one has */
  readonly own: string
  readonly others: string
  readonly value: string
  /** What a door of that sandbox looks at everything with */
  readonly screen: Screen
  /** Where a placeholder stands for something and should not, or the other way round */
  astray(signal: AbortSignal): Promise<readonly string[]>
}

type Violated = SandboxSecretsRequest['violated']

const injection: Injection = {
  use: 'canary',
  inject: 'egress',
  as: 'CANARY',
  hosts: [{ ...api, caFile: null }],
  headers: ['authorization'],
  query: false,
  body: false,
  websocket: false,
  placeholder: { prefix: '', length: 40 },
}

const [header, otherHeader, query, body]: readonly SwapPlace[] = [
  { in: 'header', name: 'authorization' },
  { in: 'header', name: 'x-other' },
  { in: 'query' },
  { in: 'body' },
]

/** Whether it is let through to another host where its halves come one after the other. */
const passesInPieces = (screen: Screen, text: string): boolean => {
  const isClean = screen.stream({ ...api, host: 'other.sallyport.test' })
  const middle = Math.floor(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].every((piece) => isClean(Buffer.from(piece)))
}

/** Has a lease end by itself. One whose time was up before it was there is tried with more: a machine may be that busy. */
const letRunOut = async (lease: (ms: number) => Promise<Lease>): Promise<void> => {
  for (let ms = briefMs; ; ms *= 4) {
    const brief = await lease(ms).catch((error: unknown) => {
      if (ms > ampleMs) throw error
      return null
    })
    if (brief === null) continue
    const endless = (): Error => new Error(`a lease of ${ms} ms was not over within ${ampleMs} ms more`)
    if (!brief.ended.aborted) await within(once(brief.ended, 'abort'), ms + ampleMs, endless)
    return
  }
}

/** Leases the credential to a sandbox, until it is disposed of. */
export const leaseCanary = async (folder: string, signal: AbortSignal): Promise<CanarySecret> => {
  const value = `secret-${newInstanceId()}`
  const broker = createBroker({
    sources: { canary: { kind: 'env', variable: 'CANARY' }, second: { kind: 'env', variable: 'SECOND' } },
    environment: { CANARY: value, SECOND: `second-${newInstanceId()}` },
    uid: process.getuid?.() ?? 0,
    initPath: await findInitBinary(),
  })
  const sandboxWith = (injections: readonly Injection[], violated: Violated = () => undefined) =>
    broker.forSandbox({ server: 'probes', instance: newInstanceId(), injections, violated })
  const sandbox = (hosts = injection.hosts) => sandboxWith([{ ...injection, hosts }])
  const [holder, other] = [sandbox(), sandbox()]
  /** Two secrets for one host: one after the other, and who waits for too long gets none */
  const togetherAtOneHost = async (signal: AbortSignal): Promise<readonly string[]> => {
    using both = sandboxWith([injection, { ...injection, use: 'second', as: 'SECOND' }])
    using first = await both.lease(request, { signal })
    const second = { ...request, call: 'c-verify-2', names: ['second'] }
    const giveUp = new AbortController()
    let isOpen = false
    const isRefused = both.lease(second, { signal: AbortSignal.any([signal, giveUp.signal]) }).then(
      () => {
        isOpen = true
        return false
      },
      (error: unknown) => SallyportError.from(error).code === 'ERR_CREDENTIAL_BUSY',
    )
    // Whoever asks for as much elsewhere, and for it later, has it by and by: it would be open here as well.
    for (let times = 0; times < turns; times++) {
      using apart = sandboxWith([{ ...injection, use: 'second', as: 'SECOND' }])
      ;(await apart.lease(second, { signal })).end()
    }
    const wasOpen = isOpen
    giveUp.abort()
    const isTurnedAway = await isRefused
    first.end()
    using later = await both.lease(second, { signal })
    return !wasOpen && isTurnedAway && !later.ended.aborted ? [] : ['two secrets for one host: open at once']
  }
  const waiting = { signal }
  const request = {
    permit: 'p-verify',
    call: 'c-verify',
    names: ['canary'],
    deadlineMs,
    attribution: 'call',
  } as const
  await holder.lease(request, waiting)
  const [own = ''] = holder.swap.placeholders
  const [others = ''] = other.swap.placeholders
  return {
    own,
    others,
    value,
    screen: holder.screen,
    async astray(signal) {
      using third = sandbox()
      const [placeholder = ''] = third.swap.placeholders
      const found: string[] = []
      const stands = (
        when: string,
        expected: CredentialViolation['reason'] | 'live',
        target: EgressEndpoint,
        place: SwapPlace | undefined = header,
      ): void => {
        const swap = third.swap.swap(placeholder, target, place ?? { in: 'elsewhere' })
        const state = swap.state === 'live' ? (swap.value === value ? 'live' : 'another') : swap.reason
        if (state !== expected) found.push(`${when}: ${state}`)
      }
      stands('before a call', 'no-lease', api)
      const lease = await third.lease(request, { signal })
      stands('in a call', 'live', api)
      stands('at another host', 'other-host', { ...api, host: 'other.sallyport.test' })
      stands('at another port', 'other-host', { ...api, port: 8443 })
      stands('in another header', 'other-place', api, otherHeader)
      stands('in a query', 'other-place', api, query)
      stands('in a body', 'other-place', api, body)
      for (const [what, text] of Object.entries({ 'what stands for it': placeholder, value }))
        if (passesInPieces(third.screen, text)) found.push(`in pieces: ${what}`)
      lease.end()
      stands('after a call', 'no-lease', api)
      await letRunOut((deadlineMs) => third.lease({ ...request, deadlineMs }, { signal }))
      stands('after its time', 'no-lease', api)
      await third.lease(request, { signal })
      third[Symbol.dispose]()
      stands('of a sandbox that is gone', 'no-lease', api)
      const { astrayOnItsWay } = await onTheWay()
      const onItsWay = await astrayOnItsWay(
        folder,
        (host) => sandbox([host]),
        (secrets) => secrets.lease(request, { signal }),
        value,
      )
      const { astrayInParts } = await inItsParts()
      const inParts = await astrayInParts(
        folder,
        (host, parts, violated) =>
          sandboxWith([{ ...injection, ...parts, hosts: [host] }], ({ reason }) => violated(reason)),
        (secrets) => secrets.lease(request, { signal }),
        value,
      )
      return [...found, ...(await togetherAtOneHost(signal)), ...onItsWay, ...inParts]
    },
    [Symbol.dispose]() {
      holder[Symbol.dispose]()
      other[Symbol.dispose]()
    },
  }
}
