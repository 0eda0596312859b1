// The secrets of one sandbox: what it holds in their place, and the leases that make those stand for something.
import { SallyportError } from '../errors.ts'
import type { EgressEndpoint, Screen } from '../schema/egress.ts'
import type {
  CredentialViolation,
  Injection,
  InjectionKind,
  LeakWatch,
  Lease,
  LeaseRequest,
  Redactor,
  SandboxSecrets,
  SandboxSecretsRequest,
  Swap,
  SwapPlace,
  SwapPort,
} from '../schema/credentials.ts'
import { type Leased, leaseOf } from './lease.ts'
import { mintPlaceholder } from './placeholder.ts'
import type { Holder, Placeholders } from './placeholders.ts'
import { createRedactor, leakWatch } from './redactor.ts'
import { KnownValues } from './values.ts'
import { type OpenSecret, Windows } from './windows.ts'

/** Names of credentials, and how each is injected. */
type Wanted = ReadonlyMap<string, readonly Injection[]>

type ReadNow = (credential: string, kinds: readonly InjectionKind[], signal: AbortSignal) => Promise<Buffer>

/** What the sandboxes of one broker share. */
export interface BrokerShare {
  /** Takes what is handed out */
  readonly values: KnownValues
  /** The placeholders of all */
  readonly everybody: Placeholders
  readonly read: ReadNow
  /** Told of the sandbox's end */
  readonly disposed: () => void
}

/** Whoever made it disposes of it; then no placeholder of the sandbox stands for anything, and every lease is over. */
export class SecretsOfSandbox implements SandboxSecrets {
  readonly environment: Readonly<Record<string, string>>
  readonly swap: SwapPort
  readonly screen: Screen
  readonly redactor: Redactor
  readonly #request: SandboxSecretsRequest
  readonly #share: BrokerShare
  readonly #placeholders = new Map<string, Injection>()
  readonly #holder: Holder
  /** Values that the sandbox is never given, so that one that it sends out has leaked */
  readonly #unseen = new KnownValues()
  readonly #windows = new Windows()
  readonly #leases = new Set<Lease>()
  #isOver = false

  /** Mints the placeholders. */
  constructor(request: SandboxSecretsRequest, share: BrokerShare) {
    const { server, injections } = request
    this.#request = request
    this.#share = share
    this.#holder = { server, isOver: false }
    for (const injection of injections.filter(({ inject }) => inject === 'egress')) {
      const placeholder = mintPlaceholder(injection.placeholder, [...this.#placeholders.keys()])
      this.#placeholders.set(placeholder, injection)
      share.everybody.add(placeholder, this.#holder, injection)
    }
    this.environment = Object.fromEntries([...this.#placeholders].map(([it, { as }]) => [as, it]))
    this.swap = {
      injections,
      placeholders: [...this.#placeholders.keys()],
      swap: (placeholder, target, place) => this.#swap(placeholder, target, place),
      watch: (target, own) => this.#watch(target, (other) => own === 'counts' || other !== this.#holder),
    }
    this.screen = {
      stream: (target) => {
        const look = this.#watch(target, () => true)
        return (chunk) => look(chunk) === null
      },
      text: (text, target) => this.#isClean(text, target),
    }
    this.redactor = createRedactor(share.values.scanner)
  }

  /** Reads what the call may use, and opens it. Throws ERR_CREDENTIAL_REFUSED, or as a source fails; nothing is open then. */
  async lease(request: LeaseRequest, { signal }: { readonly signal: AbortSignal }): Promise<Lease> {
    const { server, injections } = this.#request
    if (this.#isOver) throw refused(server, 'its sandbox is gone')
    const wanted = wantedOf(server, injections, request)
    const bound = AbortSignal.any([signal, AbortSignal.timeout(request.deadlineMs)])
    const secrets = await readAll(wanted, this.#share.read, bound)
    const end = new AbortController()
    try {
      await this.#windows.open({ secrets, ended: end.signal }, bound)
      if (this.#isOver) throw refused(server, 'its sandbox is gone')
    } catch (error) {
      end.abort()
      for (const { value } of secrets) value.fill(0)
      throw error
    }
    this.#learn(secrets, wanted)
    const lease = leaseOf(request, leasedOf(secrets, wanted), end)
    this.#leases.add(lease)
    lease.ended.addEventListener('abort', () => this.#leases.delete(lease), { once: true })
    return lease
  }

  retire(): void {
    this.#holder.isOver = true
  }

  [Symbol.dispose](): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#share.everybody.end(this.#holder)
    for (const lease of this.#leases) lease.end()
    this.#share.disposed()
  }

  #learn(secrets: readonly OpenSecret[], wanted: Wanted): void {
    for (const { credential, value } of secrets) {
      this.#share.values.add(credential, value)
      if ((wanted.get(credential) ?? []).every(({ inject }) => inject === 'egress'))
        this.#unseen.add(credential, value)
    }
  }

  #swap(placeholder: string, { host, port }: EgressEndpoint, place: SwapPlace): Swap {
    const injection = this.#placeholders.get(placeholder)
    if (injection === undefined)
      throw new Error('a placeholder was asked for that this sandbox does not have')
    const credential = injection.use
    const open = this.#isOver ? null : this.#windows.current(credential)
    const reason = blockReason(injection, { host, port }, place) ?? (open === null ? 'no-lease' : null)
    if (open !== null && reason === null)
      return { state: 'live', credential, value: open.value.toString('utf8'), until: open.until }
    const blocked = reason ?? 'no-lease'
    this.#request.violated({ credential, host, port, reason: blocked, place })
    return { state: 'blocked', credential, reason: blocked }
  }

  #watch(target: EgressEndpoint, counts: (other: Holder) => boolean): LeakWatch {
    const values = leakWatch(this.#unseen.scanner)
    const strays = this.#share.everybody.watch(this.#holder, target, counts)
    return (chunk) => {
      const credential = values(chunk)
      const found = credential === null ? strays(chunk) : ({ credential, reason: 'value' } as const)
      if (found === null) return null
      this.#request.violated({ ...found, host: target.host, port: target.port, place: null })
      return found.reason
    }
  }

  #isClean(text: string, { host, port }: EgressEndpoint): boolean {
    const found = this.#share.everybody.look(text, this.#holder, { host, port })
    if (found !== null) this.#request.violated({ ...found, host, port, place: null })
    return found === null
  }
}

const leasedOf = (secrets: readonly OpenSecret[], wanted: Wanted): readonly Leased[] =>
  [...wanted].flatMap(([credential, ways]) => {
    const value = secrets.find((it) => it.credential === credential)?.value
    return value === undefined ? [] : ways.map((injection) => ({ injection, value }))
  })

const blockReason = (
  injection: Injection,
  target: EgressEndpoint,
  place: SwapPlace,
): CredentialViolation['reason'] | null => {
  if (!injection.hosts.some(({ host, port }) => host === target.host && port === target.port))
    return 'other-host'
  return isGranted(injection, place) ? null : 'other-place'
}

const isGranted = ({ headers, query, body }: Injection, place: SwapPlace): boolean => {
  switch (place.in) {
    case 'header':
      return headers.includes(place.name)
    case 'basic':
      return headers.includes('authorization')
    case 'query':
      return query
    case 'body':
      return body
    case 'elsewhere':
      return false
  }
}

// What each name is injected as; refused where a name is not the server's, or two would open for one target.
const wantedOf = (server: string, injections: readonly Injection[], { names }: LeaseRequest): Wanted => {
  const wanted = new Map(names.map((name) => [name, injections.filter(({ use }) => use === name)] as const))
  const owners = new Map<string, string>()
  for (const [name, ways] of wanted) {
    if (ways.length === 0) throw refused(server, `credential ${name} is not one of the server's`)
    for (const target of targetsOf(ways)) {
      const owner = owners.get(target) ?? name
      if (owner !== name)
        throw refused(
          server,
          `${owner} and ${name} both go to ${target}; a call may use one secret for a target`,
        )
      owners.set(target, name)
    }
  }
  return wanted
}

const targetsOf = (ways: readonly Injection[]): readonly string[] =>
  ways
    .filter(({ inject }) => inject === 'egress')
    .flatMap(({ hosts }) => hosts.map(({ host, port }) => `${host}:${port}`))

const readAll = async (
  wanted: Wanted,
  read: ReadNow,
  signal: AbortSignal,
): Promise<readonly OpenSecret[]> => {
  const reads = await Promise.allSettled(
    [...wanted].map(async ([credential, ways]) => {
      const value = await read(
        credential,
        ways.map(({ inject }) => inject),
        signal,
      )
      return { credential, value, targets: targetsOf(ways) }
    }),
  )
  const secrets = reads.flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []))
  const failure = reads.find((it) => it.status === 'rejected')
  if (failure === undefined) return secrets
  for (const { value } of secrets) value.fill(0)
  throw SallyportError.from(failure.reason)
}

const refused = (server: string, why: string): SallyportError =>
  new SallyportError('ERR_CREDENTIAL_REFUSED', `no secret for server ${server}: ${why}`, { server })
