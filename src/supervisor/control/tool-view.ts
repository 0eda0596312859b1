// How control methods show tools: named within limits, described in few words, without characters that deceive.
import { createHash } from 'node:crypto'
import type { ToolView } from '../../rpc/governed.ts'
import { beginning } from '../../lib/clip.ts'
import { namesAny } from '../../lib/glob.ts'
import { rememberedOf } from '../../lib/remembered.ts'
import { readsOnly } from '../../lib/reads-only.ts'
import { secretShape } from '../../lib/secret-shape.ts'
import type { Gate } from '../../schema/gate.ts'
import type { Governor } from '../../schema/governor.ts'
import type { ServerSettings, Settings } from '../../schema/settings.ts'
import type { ListedTool } from '../client/tool-surface.ts'

const maxName = 64
const maxSchemaDepth = 10
/** Most characters of a server's instructions that are shown */
export const maxInstructions = 2048

/** Whether a description is cut as for lists, or as for one tool. */
export type DescriptionLength = 'list' | 'full'

/** What a view is made of, whether the server lists the tool or it was accepted earlier. */
export type KnownTool = Pick<ListedTool, 'tool' | 'description' | 'inputSchema' | 'annotations'>

/** What decides how tools are seen. */
export interface ViewPolicy {
  readonly gate: Pick<Gate, 'lists'>
  readonly governor: Pick<Governor, 'decide'>
  readonly settings: Pick<Settings, 'tools'>
}

/** The tools of one server as its settings let them be seen, each cleaned as it is taken; what could never be called is left out. */
export function* viewTools(
  server: ServerSettings,
  tools: readonly KnownTool[],
  { gate, governor, settings: { tools: settings } }: ViewPolicy,
  length: DescriptionLength,
): Generator<ToolView, undefined> {
  const limit = length === 'list' ? settings.descriptionList : settings.descriptionFull
  for (const listed of tools) {
    if (!gate.lists(server, listed.tool)) continue
    yield {
      name: displayName(server.name, listed.tool, settings.naming),
      server: server.name,
      tool: listed.tool,
      description: descriptionOf(listed)(limit),
      decision: governor.decide({ server, kind: 'tool', subject: listed.tool, arguments: {} }).action,
      input_schema: schemaView(listed.inputSchema),
      ...harmOf(server, listed),
      annotations: annotationsOf(listed),
    }
  }
}

// A tool is cleaned once, however often it is listed and searched: of hundreds of long ones that takes a second.
const annotationsOf = rememberedOf(({ annotations }: KnownTool) => prune(annotations, maxSchemaDepth, said))
const descriptionOf = rememberedOf(({ description }: KnownTool) => harmlessly(description))

/** What a call may do: the server's own claims go before the operator's word for it, and absent means the worst. */
function harmOf(
  server: ServerSettings,
  { tool, annotations }: KnownTool,
): Pick<ToolView, 'read_only' | 'destructive'> {
  const { destructiveHint } = { ...(annotations as object) } as Record<string, unknown>
  const readOnly = readsOnly(annotations, () => namesAny(server.tools.readOnly, tool))
  return { read_only: readOnly, destructive: !readOnly && destructiveHint !== false }
}

/** Splits off the views whose names collide; neither is shown, since one would be taken for the other. */
export function withoutCollisions(views: readonly ToolView[]): {
  readonly tools: readonly ToolView[]
  readonly collisions: readonly string[]
} {
  const counts = new Map<string, number>()
  for (const { name } of views) counts.set(name, (counts.get(name) ?? 0) + 1)
  return {
    tools: views.filter(({ name }) => counts.get(name) === 1),
    collisions: [...counts].filter(([, count]) => count > 1).map(([name]) => name),
  }
}

/** The naming pattern filled in, at most 64 characters; what is longer ends in a digest of the whole. */
export function displayName(server: string, tool: string, naming: Settings['tools']['naming']): string {
  const clean = (part: string): string => part.replace(/[^A-Za-z0-9_-]/g, '_')
  const full = naming.replace('<server>', clean(server)).replace('<tool>', clean(tool))
  if (full.length <= maxName) return full
  const digest = createHash('sha256').update(`${server}/${tool}`).digest('hex').slice(0, 8)
  return `${full.slice(0, maxName - 9)}_${digest}`
}

/** Plain text that does not look as if it held a secret; one that does is withheld whole. */
export const harmless = (text: string, limit: number): string => harmlessly(text)(limit)

function harmlessly(text: string): (limit: number) => string {
  // Again without what is taken out: a secret may be held together by what nobody sees.
  const clean = plain(text, Infinity)
  const kind = secretShape(text) ?? secretShape(clean)
  return (limit) => (kind === null ? beginning(clean, limit) : withheld(kind))
}

const withheld = (kind: string): string => `(withheld: it holds what looks like ${kind})`

/** What decides what is valid stays as it is, unless it looks as if it held a secret. */
function unharmed(text: string): string {
  const kind = secretShape(text)
  return kind === null ? text : withheld(kind)
}

/** What a terminal obeys and does not show (ECMA-48): of colours and the cursor, and strings such as a window's title with their end. None holds what another begins with, or a text of beginnings would be read as often as it has them. */
const terminalSequence =
  // oxlint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u0090\u0098\u009b-\u009f]*(?:\u0007|\u001b\\|\u009c)/g

/** Text without control, format and ANSI characters and others that nobody sees, at most `limit` long. */
export function plain(text: string, limit: number): string {
  const clean = text
    .replace(terminalSequence, '')
    .replace(/[\p{C}\p{Zl}\p{Zp}\p{DI}]+/gu, ' ')
    .trim()
  return beginning(clean, limit)
}

/** The value, with everything deeper than `depth` levels replaced by an empty object, and its words made harmless; `other` is what becomes of the rest of its text. */
export function prune(
  value: unknown,
  depth: number,
  other: (text: string) => string = unharmed,
  isOfNames = false,
): unknown {
  if (typeof value === 'string') return other(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth === 0) return {}
  if (Array.isArray(value)) return value.map((item) => prune(item, depth - 1, other))
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      said(key),
      prune(item, depth - 1, !isOfNames && wordy.has(key) ? said : other, !isOfNames && naming.has(key)),
    ]),
  )
}

/** Members of a schema that are for readers; what else is text decides what is valid, and stays */
const wordy: ReadonlySet<string> = new Set([
  'description',
  'title',
  '$comment',
  'default',
  'examples',
  'format',
])
/** Members of a schema whose own members are called as arguments or other schemas are, and not as what a schema has */
const naming: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
])
const maxText = 2048
const said = (text: string): string => harmless(text, maxText)

/** A schema of a tool's arguments or result, as `prune` leaves it at the depth that is shown; each is looked through once, however often it is shown. */
export const schemaView = (schema: unknown): unknown =>
  typeof schema === 'object' && schema !== null ? viewOf(schema) : prune(schema, maxSchemaDepth)

const viewOf = rememberedOf((schema: object) => prune(schema, maxSchemaDepth))
