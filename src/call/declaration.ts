// What the operator accepted about a tool: nine fields, and the digest of the surface that they were accepted for.
import { rounded } from '../lib/one-way.ts'
import { readsOnly } from '../lib/reads-only.ts'
import { canonicalize, digestOf } from './canonical.ts'

/** What a tool may do to the world. */
export type SideEffect = 'read' | 'write' | 'execute' | 'network' | 'secret-access' | 'other'

/** The nine fields of a tool's declaration. */
export interface ToolDeclaration {
  readonly name: string
  /** Version of the tool or of its schema, as the declaration counts it */
  readonly version: string
  /** JSON Schema of the arguments, as the server listed it */
  readonly parameters: unknown
  readonly sideEffects: readonly SideEffect[]
  /** Paths as the server sees them, and `host:port` pairs, that the tool may touch */
  readonly resourceScopes: readonly string[]
  /** Names of the credentials that a call may lease */
  readonly credentials: readonly string[]
  /** JSON Schema of the result, or null where the server lists none */
  readonly output: unknown
  readonly idempotency: 'idempotent' | 'non-idempotent' | 'unknown'
  readonly failureModes: readonly string[]
}

/** A tool's declaration with what it was accepted for. */
export interface AcceptedTool {
  readonly declaration: ToolDeclaration
  /** Digest of the whole tool object as the server listed it: description and annotations too */
  readonly surfaceDigest: string
}

/** What was accepted for one server, as a whole: a change of any part is a new version. */
export interface AcceptedSurface {
  readonly server: string
  readonly serverVersion: string
  /** Digest over the program, its package and its arguments: other code is another server */
  readonly codeDigest: string
  /** The version that it said it was itself; null where it said none, or that is not on record: then nothing is held against that */
  readonly saidVersion: string | null
  /** Counts acceptances of this server, from 1; part of every tool's identity */
  readonly declarationVersion: number
  readonly tools: ReadonlyMap<string, AcceptedTool>
  /** Digest of the server's instructions, prompts and resource templates */
  readonly restDigest: string
  /** Digest of the instructions alone, which go to hosts before all else is asked for; null where that is not on record */
  readonly instructionsDigest: string | null
  /** Tools that were listed when it was accepted and were not accepted: no news, and not callable */
  readonly leftOut: readonly string[]
  /** Tools that nobody could look at when it was accepted, which are no news; null where that is not on record */
  readonly unread: readonly string[] | null
  /** Who said yes: an operator's uid, or `first-use` for the operator's standing word */
  readonly acceptedBy: string
}

/** What comparing the live surface with the accepted one found. */
export interface SurfaceChange {
  /** Listed now, never declared */
  readonly undeclared: readonly string[]
  /** Listed otherwise than when they were accepted */
  readonly changed: readonly string[]
  /** Accepted, and not listed any more */
  readonly missing: readonly string[]
  readonly isRestChanged: boolean
}

/** Digest of one tool as a server listed it. */
export const surfaceDigest = (tool: unknown): string => digestOf(canonicalize(tool))

/** Compares what a server lists now, by digest, with what was accepted for it. */
export function compareSurface(
  accepted: AcceptedSurface,
  live: ReadonlyMap<string, string>,
  restDigest: string,
): SurfaceChange {
  const undeclared: string[] = []
  const changed: string[] = []
  for (const [name, digest] of live) {
    const known = accepted.tools.get(name)
    if (known === undefined) {
      if (!accepted.leftOut.includes(name)) undeclared.push(name)
    } else if (known.surfaceDigest !== digest) changed.push(name)
  }
  const missing = [...accepted.tools.keys()].filter((name) => !live.has(name))
  return { undeclared, changed, missing, isRestChanged: restDigest !== accepted.restDigest }
}

interface Annotated {
  readonly name: string
  readonly inputSchema?: unknown
  readonly outputSchema?: unknown
  readonly annotations?: {
    readonly readOnlyHint?: unknown
    readonly destructiveHint?: unknown
    readonly idempotentHint?: unknown
    readonly openWorldHint?: unknown
  }
}

/**
 * Drafts a declaration from what a server says of a tool. Annotations are claims; an absent one means the worst:
 * destructive, running programs, not idempotent, open world. What the sandbox makes impossible is not drafted, whoever claims it. No
 * annotation speaks of credentials, so the worst is all that the server was given. Where it claims nothing of it, the operator's word
 * that the tool only reads (`tools.read_only`) is taken.
 */
export function draftDeclaration(
  tool: Annotated,
  isPossible: (effect: SideEffect) => boolean = () => true,
  credentials: readonly string[] = [],
  isVouchedFor = false,
): ToolDeclaration {
  const { inputSchema, outputSchema, annotations } = rounded(tool) as Annotated
  const { idempotentHint, openWorldHint } = annotations ?? {}
  const isReading = readsOnly(annotations, () => isVouchedFor)
  const sideEffects: SideEffect[] = isReading ? ['read'] : ['read', 'write']
  if (!isReading && isPossible('execute')) sideEffects.push('execute')
  if (openWorldHint !== false && isPossible('network')) sideEffects.push('network')
  if (credentials.length > 0) sideEffects.push('secret-access')
  return {
    name: tool.name,
    version: '1',
    parameters: inputSchema ?? { type: 'object' },
    sideEffects,
    resourceScopes: [],
    credentials,
    output: outputSchema ?? null,
    idempotency: idempotentHint === true || isReading ? 'idempotent' : 'unknown',
    failureModes: [],
  }
}

/** `<server>/<tool>@<server-version>#<declaration-version>`, the canonical identity of a tool. */
export const identityOf = (surface: Omit<AcceptedSurface, 'tools'>, tool: string): string =>
  `${surface.server}/${tool}@${surface.serverVersion}#${surface.declarationVersion}`
