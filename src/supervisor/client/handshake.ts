// How Sallyport itself finds out whom it speaks with: `initialize`, or in a process that sessions share `server/discover`.
import { beginning } from '../../lib/clip.ts'
import { whenSpent } from '../../lib/deadline.ts'
import { SallyportError } from '../../errors.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Introduced } from '../lanes/conversation.ts'
import type { Answer } from './answer.ts'
import type { RequestOptions } from './options.ts'
import { clientInfo, inModernDress, modernVersion } from '../message/modern-dress.ts'
import type { Era } from '../message/probe.ts'
import { notStateless } from '../shared/refusal.ts'
import { type Introduction, introductionOf, readIntroduction } from './surface.ts'
import { readAnswer } from '../message/read-answer.ts'
import { noHandshake, printable, unavailable } from '../message/unavailable.ts'

const handshakeVersion = '2025-11-25'
/** How a server of the later era alone may answer `initialize`: as no method of its own, or as a request that says no version */
const withoutHandshake: ReadonlySet<number> = new Set([-32600, -32601, -32602])
const knownVersions = new Set(['2024-10-07', '2024-11-05', '2025-03-26', '2025-06-18', handshakeVersion])

type Request = (method: string, params: string) => Promise<Answer>

interface Met {
  readonly era: Era
  readonly introduction: Introduction
}

/** Introduces itself, or repeats how a host did; a server that knows only the later era is spoken to in that. All in the time that is given. */
export async function meet(
  server: ServerSettings,
  ask: (method: string, params: string, options: RequestOptions) => Promise<Answer>,
  host: Introduced | null,
  options: RequestOptions,
): Promise<Met> {
  const late = noHandshake(server)
  const { promise: over, reject } = Promise.withResolvers<never>()
  const inTime = whenSpent(options.timeoutMs, () => reject(late))
  const request: Request = (method, params) => ask(method, params, { ...options, late })
  try {
    return await Promise.race([introduced(server, request, host), over])
  } finally {
    inTime()
  }
}

async function introduced(server: ServerSettings, request: Request, host: Introduced | null): Promise<Met> {
  if (server.instance === 'shared') return discover(server, request)
  const capabilities = server.roots === 'mounts' && server.mounts.length > 0 ? { roots: {} } : {}
  const params =
    host?.params ?? JSON.stringify({ protocolVersion: handshakeVersion, capabilities, clientInfo })
  const dressed = (method: string, said: string): Promise<Answer> => request(method, inModernDress(said))
  const answer = await request('initialize', params)
  if (answer.kind === 'error' && answer.code === -32022)
    return { era: 'modern', introduction: await introductionOf(dressed) }
  if (answer.kind === 'error') {
    const introduction = withoutHandshake.has(answer.code) ? await discovered(request) : null
    if (introduction !== null) return { era: 'modern', introduction }
    throw unavailable(server.name, `it refused initialize: ${printable(answer.message)}`)
  }
  const result = readAnswer('initialize', answer.result.raw) as { protocolVersion?: unknown } | null
  if (typeof result?.protocolVersion !== 'string' || !knownVersions.has(result.protocolVersion)) {
    const got = beginning(printable(JSON.stringify(result?.protocolVersion ?? null)), 64)
    const why = `it answered initialize with protocol version ${got}, which is not one of ${[...knownVersions].join(', ')}`
    throw new SallyportError('ERR_SERVER_PROTOCOL', `mcp server ${server.name} broke the protocol: ${why}`)
  }
  return { era: 'legacy', introduction: readIntroduction(result) }
}

/** What a server that knows no handshake says of itself, or null where it is none of the later era; its refusal stands then. */
async function discovered(request: Request): Promise<Introduction | null> {
  const answer = await request('server/discover', inModernDress('{}')).catch(() => null)
  if (answer === null || answer.kind === 'error') return null
  const result = readAnswer('server/discover', answer.result.raw)
  return isModern(result) ? readIntroduction(result) : null
}

/** Asks first what a server of both eras would else settle on: one process speaks but one of them. */
async function discover({ name }: ServerSettings, request: Request): Promise<Met> {
  const answer = await request('server/discover', inModernDress('{}'))
  if (answer.kind === 'error')
    throw notStateless(name, `it refused server/discover: ${printable(answer.message)}`)
  const result = readAnswer('server/discover', answer.result.raw)
  if (!isModern(result)) throw notStateless(name, 'it does not list that version')
  return { era: 'modern', introduction: readIntroduction(result) }
}

function isModern(discovery: unknown): boolean {
  const versions: unknown = Reflect.get(Object(discovery), 'supportedVersions')
  return Array.isArray(versions) && versions.includes(modernVersion)
}
