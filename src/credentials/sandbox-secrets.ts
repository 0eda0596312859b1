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

type ReadNow = (credential: string, kinds: readonly InjectionKind[], signal: AbortSignal) => Promise<Buffer>

/**
 * Mints the placeholders of a sandbox. `values` takes what is handed out, `everybody` the placeholders, and `disposed` is
 * told of the sandbox's end.
 */
export const sandboxSecrets = (
  { server, injections, violated }: SandboxSecretsRequest,
  values: KnownValues,
  everybody: Placeholders,
  read: ReadNow,
  disposed: () => void,
): SandboxSecrets => {
  const placeholders = new Map<string, Injection>()
  const holder: Holder = { server, isOver: false }
  for (const injection of injections.filter(({ inject }) => inject === 'egress')) {
    const placeholder = mintPlaceholder(injection.placeholder, [...placeholders.keys()])
    placeholders.set(placeholder, injection)
    everybody.add(placeholder, holder, injection)
  }
  // Values that the sandbox is never given, so that one that it sends out has leaked
  const unseen = new KnownValues()
  const windows = new Windows()
  const leases = new Set<Lease>()
  let isOver = false

  const swap: SwapPort = {
    injections,
    placeholders: [...placeholders.keys()],
    swap(placeholder, { host, port }, place): Swap {
      const injection = placeholders.get(placeholder)
      if (injection === undefined)
        throw new Error('a placeholder was asked for that this sandbox does not have')
      const credential = injection.use
      const open = isOver ? null : windows.current(credential)
      const reason = blockReason(injection, { host, port }, place) ?? (open === null ? 'no-lease' : null)
      if (open !== null && reason === null)
        return { state: 'live', credential, value: open.value.toString('utf8'), until: open.until }
      const blocked = reason ?? 'no-lease'
      violated({ credential, host, port, reason: blocked })
      return { state: 'blocked', credential, reason: blocked }
    },
    watch: (target, own) => watch(target, (other) => own === 'counts' || other !== holder),
  }
  const watch = (target: EgressEndpoint, counts: (other: Holder) => boolean): LeakWatch => {
    const values = leakWatch(unseen.scanner)
    const strays = everybody.watch(holder, target, counts)
    return (chunk) => {
      const credential = values(chunk)
      const found = credential === null ? strays(chunk) : ({ credential, reason: 'value' } as const)
      if (found === null) return null
      violated({ ...found, host: target.host, port: target.port })
      return found.reason
    }
  }
  const screen: Screen = {
    stream(target) {
      const look = watch(target, () => true)
      return (chunk) => look(chunk) === null
    },
    text(text, { host, port }) {
      const found = everybody.look(text, holder, { host, port })
      if (found !== null) violated({ ...found, host, port })
      return found === null
    },
  }

  return {
    environment: Object.fromEntries([...placeholders].map(([placeholder, { as }]) => [as, placeholder])),
    swap,
    screen,
    redactor: createRedactor(values.scanner),
    async lease(request, { signal }) {
      if (isOver) throw refused(server, 'its sandbox is gone')
      const wanted = wantedOf(server, injections, request)
      const names = [...wanted.keys()]
      const bound = AbortSignal.any([signal, AbortSignal.timeout(request.deadlineMs)])
      const secrets = await readAll(wanted, read, bound)
      const end = new AbortController()
      try {
        await windows.open({ secrets, ended: end.signal }, bound)
        if (isOver) throw refused(server, 'its sandbox is gone')
      } catch (error) {
        end.abort()
        for (const { value } of secrets) value.fill(0)
        throw error
      }
      for (const { credential, value } of secrets) {
        values.add(credential, value)
        if ((wanted.get(credential) ?? []).every(({ inject }) => inject === 'egress'))
          unseen.add(credential, value)
      }
      const leased: readonly Leased[] = names.flatMap((credential) => {
        const value = secrets.find((it) => it.credential === credential)?.value
        return value === undefined
          ? []
          : (wanted.get(credential) ?? []).map((injection) => ({ injection, value }))
      })
      const lease = leaseOf(request, leased, end)
      leases.add(lease)
      lease.ended.addEventListener('abort', () => leases.delete(lease), { once: true })
      return lease
    },
    [Symbol.dispose]() {
      if (isOver) return
      isOver = true
      everybody.end(holder)
      for (const lease of leases) lease.end()
      disposed()
    },
  }
}

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
const wantedOf = (
  server: string,
  injections: readonly Injection[],
  { names }: LeaseRequest,
): ReadonlyMap<string, readonly Injection[]> => {
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
  wanted: ReadonlyMap<string, readonly Injection[]>,
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
