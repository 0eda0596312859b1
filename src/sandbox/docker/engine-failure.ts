// Why the engine did not do what it was asked, in codes and words of ours.
import { SallyportError } from '../../errors.ts'
import { errnoOf } from '../../lib/missing.ts'
import { describeEndpoint, type Endpoint } from './endpoint.ts'

/** The engine's HTTP status in a failure of `Engine`, 0 where it gave none. */
export const statusOf = (error: unknown): number => {
  const status = error instanceof SallyportError ? error.details['status'] : null
  return typeof status === 'number' ? status : 0
}

/**
 * Whether another try may fare better: the engine failed, or did not take up what it had made. Somebody may have removed that, or
 * what it runs it with was killed, which it tells with the status of a request that can’t be right, too.
 */
export const mayPass = (error: SallyportError): boolean =>
  error.code === 'ERR_ENGINE_REFUSED' &&
  (statusOf(error) >= 500 || ofMade.has(String(error.details['request'])))

/** What is asked of a container that was just made */
const ofMade: ReadonlySet<string> = new Set(['attach', 'start', 'inspect'])

/** Whatever went wrong with a request, as an error of ours. */
export const failure = (endpoint: Endpoint, what: string, error: unknown): SallyportError => {
  if (error instanceof SallyportError) return error
  const { statusCode } = error as { statusCode?: unknown }
  if (typeof statusCode === 'number' && !isHalfThere(error)) return refusal(what, wordsOf(error), statusCode)
  const at = describeEndpoint(endpoint)
  return new SallyportError(
    'ERR_ENGINE_UNREACHABLE',
    `the container engine at ${at} (${endpoint.from}) does not answer: ${errnoOf(error) ?? wordsOf(error)}; ${mendOf(error)}`,
    { endpoint: at, from: endpoint.from, request: what },
    { cause: error },
  )
}

// What runs its containers is a process of its own, which is started again where it ends. gRPC’s word for that is at the end.
const isHalfThere = (error: unknown): boolean => wordsOf(error).trim().endsWith(': unavailable')

const mendOf = (error: unknown): string => {
  if (isHalfThere(error)) return 'see that its containerd runs, and stays'
  const code = errnoOf(error) ?? ''
  if (code === 'EACCES')
    return 'the daemon’s user may not use it: add that user to the group of the socket, which makes it root on this machine, or run the daemon as root'
  if (/^(ERR_SSL|ERR_TLS|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|EPROTO)/.test(code))
    return 'it answers, and TLS does not hold: see that ca.pem signed its certificate, for the name by which it is reached, and that it knows who signed cert.pem'
  return 'start it, or name another with DOCKER_HOST'
}

// dockerode puts the status and its meaning before the engine's own words.
const wordsOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/^\(HTTP code \d+\) .*? - /, '')

/** The engine said no. */
export const refusal = (what: string, said: string, status: number): SallyportError =>
  new SallyportError(
    'ERR_ENGINE_REFUSED',
    `the container engine refused to ${what}: ${said.trim() || `status ${status}, without a word`}; ${refusalMendOf(what, said)}`,
    { request: what, status },
  )

const refusalMendOf = (what: string, said: string): string => {
  if (/HTTP request to an HTTPS server/.test(said)) return 'say DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH'
  if (what !== 'pull') return 'mend what it names'
  const mends: readonly (readonly [RegExp, string])[] = [
    [/no basic auth|unauthorized|denied/i, 'log in with docker login, as the user that runs this'],
    [/manifest unknown|not found|HTTP 404/i, 'see that name, tag and digest are the registry’s'],
    [
      /refused$|no such host|timeout|unreachable/i,
      'see that the registry answers, and that the engine reaches it',
    ],
  ]
  return mends.find(([words]) => words.test(said.trim()))?.[1] ?? 'mend what it names'
}

/** The engine said nothing in time. */
export const late = (endpoint: Endpoint | null, what: string, ms: number): SallyportError => {
  const at = endpoint === null ? '' : ` at ${describeEndpoint(endpoint)}`
  return new SallyportError(
    'ERR_ENGINE_TIMEOUT',
    `the container engine${at} did not answer \`${what}\` within ${ms} ms; look at its log, or restart it`,
    { request: what, ms },
  )
}
