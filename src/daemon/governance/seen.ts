// What a server lists, read: each tool with the declaration that it could be accepted as, and whether words about it fit.
import { canonicalize, digestOf, NotCanonical } from '../../call/canonical.ts'
import {
  type AcceptedSurface,
  type AcceptedTool,
  draftDeclaration,
  surfaceDigest,
  type ToolDeclaration,
} from '../../call/declaration.ts'
import { isSameServer } from '../../call/live.ts'
import { missingGrant, namesOf, uncontained } from '../../config/containment.ts'
import { SallyportError } from '../../errors.ts'
import { beginning } from '../../lib/clip.ts'
import { namesAny } from '../../lib/glob.ts'
import { confusable, spellings } from '../../lib/key-folding.ts'
import { own } from '../../lib/own.ts'
import { rememberedOf } from '../../lib/remembered.ts'
import type { Observation, Peer } from '../../schema/governor.ts'
import type { DeclaredTool, ProfileSettings, ServerSettings } from '../../schema/settings.ts'

/** A tool object beyond this many characters is no tool that anybody could have looked at */
const maxToolLength = 262_144
/** Most characters of all tools together, and of all else before its text is digested as it stands */
export const maxLength = 1_048_576
/** Stands for the digest of a tool that was accepted, and is listed now as nobody can read it */
export const unreadableDigest = 'unreadable'
/** Names under which tools can be accepted; what has another is passed over */
export const toolName = /^[A-Za-z0-9_.-]{1,128}$/

/** A surface in the form in which it is compared and accepted. */
export interface Seen {
  readonly server: ServerSettings
  readonly codeDigest: string
  readonly saidVersion: string | null
  readonly tools: ReadonlyMap<string, AcceptedTool>
  readonly digests: Map<string, string>
  /** What is no tool, since nobody can tell what it is, by name, with the reason; where one of that name was accepted, it has changed */
  readonly unreadable: ReadonlyMap<string, string>
  /** Names of all that is listed and is no tool, or beyond what is looked at: nothing of it can be accepted */
  readonly passedOver: readonly string[]
  /** Tools are listed beyond those that are looked at */
  readonly isCut: boolean
  /** Null where only the tools were asked for */
  readonly rest: SeenRest | null
}

/** All else that a server lists. */
export interface SeenRest {
  readonly restDigest: string
  readonly instructionsDigest: string
  /** It says to its host what it does not say to us, or by turns this and that */
  readonly isTwofold: boolean
}

/** The tools that are accepted when only some are named: those, and what was accepted before and is listed as it was. */
export function choose(
  { server, codeDigest, saidVersion, tools }: Seen,
  only: readonly string[] | null,
  before: AcceptedSurface | null,
): ReadonlyMap<string, AcceptedTool> {
  if (only === null) return tools
  const unknown = only.find((name) => !tools.has(name))
  if (unknown !== undefined)
    throw new SallyportError(
      'ERR_TOOL_NOT_FOUND',
      `${server.name} lists no tool ${unknown} that could be accepted; see sallyport declare ${server.name}`,
      { server: server.name, tool: unknown },
    )
  const isSame =
    before !== null && isSameServer(before, { serverVersion: server.version, codeDigest, saidVersion })
  const kept = isSame
    ? [...before.tools].filter(([name, tool]) => tools.get(name)?.surfaceDigest === tool.surfaceDigest)
    : []
  const chosen = [...tools].filter(([name]) => only.includes(name))
  return new Map([...kept, ...chosen])
}

/** Nothing is accepted in words that are not about what is there. */
export function expectListed(
  server: string,
  declared: NonNullable<ServerSettings['declaration']>,
  listed: ReadonlyMap<string, unknown>,
): void {
  for (const tool of Object.values(declared)) {
    const why = mismatch(tool, listed.get(tool.name))
    if (why !== null)
      throw new SallyportError(
        'ERR_DECLARATION_MISMATCH',
        `the declaration of ${server}/${tool.name} is not about what ${server} lists: ${why}; draft it anew with sallyport declare ${server}`,
        { server, tool: tool.name },
      )
  }
}

/** Nothing is accepted that no call could be let through for. */
export function expectContained(
  server: ServerSettings,
  profile: ProfileSettings | null,
  tools: ReadonlyMap<string, AcceptedTool>,
): void {
  for (const [tool, { declaration }] of tools) {
    const { sideEffects, resourceScopes } = declaration
    const why = uncontained(server, profile, sideEffects, resourceScopes)
    if (why !== null)
      throw new SallyportError(
        'ERR_EFFECT_UNCONTAINED',
        `${server.name}/${tool} was not accepted: ${why}; grant it, or take it out of the declaration`,
        { server: server.name, tool },
      )
  }
}

function mismatch(declared: DeclaredTool, listed: unknown): string | null {
  if (listed === undefined) return 'it lists no tool of that name'
  const digest = digestOfTool(listed)
  if (digest === null) return 'what it lists cannot be read in one way'
  if (declared.surfaceDigest !== null && declared.surfaceDigest !== digest)
    return `its digest is ${digest.slice(0, 12)}…, declared was ${declared.surfaceDigest.slice(0, 12)}…`
  const draft = draftDeclaration({ ...(listed as object), name: declared.name })
  const isSame = (a: unknown, b: unknown): boolean => canonicalize(a) === canonicalize(b)
  if (!isSame(declared.parameters, draft.parameters)) return 'its parameters are other ones'
  return isSame(declared.output, draft.output) ? null : 'its output is another one'
}

/** What a surface is read with. */
export interface Reading {
  /** Digest over what runs as this server: program, package, arguments */
  readonly codeOf: (server: ServerSettings) => string
  readonly profileOf: (server: ServerSettings) => ProfileSettings | null
}

/** Reads what a server lists; what nobody could have looked at is no tool. What was accepted `before` is read first. */
export function readSurface(
  { server, tools, saidVersion, rest }: Omit<Observation, 'instance'>,
  { codeOf, profileOf }: Reading,
  before: AcceptedSurface | null = null,
): Seen {
  const codeDigest = codeOf(server)
  const profile = profileOf(server)
  const { digests, unreadable, isCut } = digestsOf(tools, before)
  const readable = [...digests].flatMap(([name, surfaceDigest]): [string, AcceptedTool][] => {
    const declaration = proposal(server, profile, name, tools.get(name))
    return declaration === null ? [] : [[name, { declaration, surfaceDigest }]]
  })
  return {
    server,
    codeDigest,
    saidVersion,
    tools: new Map(readable),
    digests,
    unreadable,
    passedOver: [...tools.keys()].filter((name) => !digests.has(name)).map((name) => beginning(name, 128)),
    isCut,
    rest: rest === null ? null : digestsOfRest(rest),
  }
}

/**
 * The tools that there are, each read once: where there are more than anybody could look at, those that were accepted, and
 * then those that come first. So nothing that a server lists beside an accepted tool makes that one go unseen.
 */
function digestsOf(
  tools: ReadonlyMap<string, unknown>,
  before: AcceptedSurface | null,
): Pick<Seen, 'digests' | 'unreadable' | 'isCut'> {
  const isAccepted = ([name]: readonly [string, unknown]): boolean => before?.tools.has(name) === true
  const all = [...tools]
  const inOrder =
    before === null ? all : [...all.filter(isAccepted), ...all.filter((one) => !isAccepted(one))]
  const digests = new Map<string, string>()
  const unreadable = new Map<string, string>()
  let left = maxLength
  for (const [name, tool] of inOrder) {
    if (!toolName.test(name)) continue
    const { digest, why } = lookAt(tool)
    if (digest === null) unreadable.set(name, why)
    else {
      left -= lengthOf(tool)
      if (left < 0) break
      digests.set(name, digest)
    }
  }
  return { digests, unreadable, isCut: left < 0 }
}

/** What was seen beside its tools; throws where they alone were looked at. */
export function restOf({ server, rest }: Seen): SeenRest {
  if (rest === null)
    throw new SallyportError(
      'ERR_INTERNAL',
      `${server.name} was to be accepted, and only its tools were seen`,
    )
  return rest
}

const digestsOfRest = (rest: object): SeenRest => ({
  restDigest: digestOfRest(rest),
  instructionsDigest: digestOfInstructions(Reflect.get(rest, 'instructions')),
  isTwofold: Reflect.has(rest, 'lies'),
})

/** One form for what means the same, unless there is none, or so much of it that finding the form would take long. */
function digestOfRest(rest: object): string {
  const text = JSON.stringify(rest)
  if (text.length > maxLength) return digestOf(text)
  try {
    return digestOf(canonicalize(rest))
  } catch (error) {
    if (error instanceof NotCanonical) return digestOf(text)
    throw error
  }
}

/** Of a server that has no instructions, that of none. */
export const digestOfInstructions = (instructions: unknown): string =>
  digestOf(JSON.stringify(instructions ?? null))

/** What a tool would be accepted as: the operator's words where there are any for just this, else the draft. */
function proposal(
  server: ServerSettings,
  profile: ProfileSettings | null,
  name: string,
  listed: unknown,
): ToolDeclaration | null {
  const { declaration } = server
  if (declaration === null)
    return draftDeclaration(
      { ...(listed as object), name },
      (effect) => missingGrant(effect, server, profile) === null,
      namesOf(server.credentials),
      namesAny(server.tools.readOnly, name),
    )
  const declared = own(declaration, name)
  if (declared === undefined || mismatch(declared, listed) !== null) return null
  const { surfaceDigest: _, ...words } = declared
  return words
}

/** Null for what is too long, or what two readers could read differently: it is no tool. */
export const digestOfTool = (tool: unknown): string | null => lookAt(tool).digest

interface LookedAt {
  readonly digest: string | null
  /** Why there is no digest; empty where there is one */
  readonly why: string
}

const no = (why: string): LookedAt => ({ digest: null, why })

const lookAt = (tool: unknown): LookedAt =>
  typeof tool === 'object' && tool !== null ? lookAtListed(tool) : no(String(tool))

/** The same objects are shown, and compared before, as often as anybody asks what there is */
const lookAtListed = rememberedOf((tool: object): LookedAt => {
  const length = lengthOf(tool)
  if (length === Infinity) return no('it is nested too deep')
  if (length > maxToolLength) return no(`it is longer than ${maxToolLength} characters`)
  if (isTwofold(tool)) return no('it says a key in two spellings, or __proto__')
  try {
    return { digest: surfaceDigest(tool), why: '' }
  } catch (error) {
    return no(error instanceof NotCanonical ? `it ${error.what}` : 'it is nested too deep')
  }
})

/** What policy, operators and hosts read of a tool, by their one spelling */
const toolKeys = spellings(['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'])
const hintKeys = spellings(['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'])

/** True where a reader that takes one spelling for another, or copies objects, would find another tool. */
function isTwofold(tool: object): boolean {
  const hints: unknown = Reflect.get(tool, 'annotations')
  const keys = Object.keys(tool)
  const hintsSaid = typeof hints === 'object' && hints !== null ? Object.keys(hints) : []
  const isCopied = [...keys, ...hintsSaid].includes('__proto__')
  return isCopied || confusable(keys, toolKeys) !== null || confusable(hintsSaid, hintKeys) !== null
}

/** Characters of a tool's text; Infinity for one that is nested too deep to be written. */
function lengthOf(tool: unknown): number {
  try {
    return JSON.stringify(tool).length
  } catch {
    return Infinity
  }
}

/** What is to be accepted of a surface, and in whose words. */
export interface Acceptance {
  /** The operator's uid */
  readonly by: string
  readonly peer: Peer
  /** The operator's declaration, or null to take the draft of what is listed */
  readonly declared: ServerSettings['declaration']
  /** The version in it that the server is to say that it is, or null */
  readonly declaredVersion: string | null
  /** Only these tools beside those that are accepted already, or null for all that is declared */
  readonly only: readonly string[] | null
}
