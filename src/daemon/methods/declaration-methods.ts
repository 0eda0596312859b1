// From what a server lists to what may be called: a draft to be read, and the operator's yes to what it was written for.
import { borrowed } from '../../call/borrowed.ts'
import { draftDeclaration } from '../../call/declaration.ts'
import { namesOf } from '../../config/containment.ts'
import type { ToolDeclaration } from '../../call/declaration.ts'
import type { OperatorMethods } from '../../rpc/protocol.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Supervisor } from '../../supervisor/supervisor.ts'
import { actor } from '../governance/actor.ts'
import type { Governance } from '../governance/governance.ts'
import { namesAny } from '../../lib/glob.ts'
import { late } from '../../lib/late.ts'
import { harmless, maxInstructions } from '../../supervisor/control/tool-view.ts'
import type { MethodCall, MethodTable } from './methods.ts'
import { readable } from '../governance/said-version.ts'
import { digestOfTool } from '../governance/seen.ts'
import { declarationView } from './tool-methods.ts'

const declarations = late(() => import('../../config/declaration.ts'))

export interface DeclarationPorts {
  readonly supervisor: Supervisor
  readonly governance: Governance
}

type Claims = OperatorMethods['servers/declare']['result']['claims']

/** The methods of operator.sock about declarations. Each runs the server once more, confined as ever. */
export function declarationMethods(
  ports: DeclarationPorts,
): MethodTable<'servers/declare' | 'declarations/accept'> {
  return {
    'servers/declare': ({ server }, call) => declare(ports, server, call),
    'declarations/accept': (params, call) => accept(ports, params, call),
  }
}

async function declare(
  { supervisor, governance }: DeclarationPorts,
  server: string,
  { caller, signal }: MethodCall,
): Promise<OperatorMethods['servers/declare']['result']> {
  const settings = supervisor.settingsOf(caller, server)
  const { tools, saidVersion, rest } = await supervisor.look(caller, server, { signal })
  const instructions: unknown = Reflect.get(Object(rest), 'instructions')
  const drafts = [...tools].flatMap(([name, listed]) => {
    const digest = digestOfTool(listed)
    if (digest === null) return []
    const draft = draftDeclaration(
      { ...(listed as object), name },
      governance.surfaces.isPossible(settings),
      namesOf(settings.credentials),
      namesAny(settings.tools.readOnly, name),
    )
    const claims = { ...(borrowed([name]).length > 0 && { name: another }), ...claimsOf(listed, draft) }
    return [{ name, draft, digest, claims }]
  })
  return {
    server,
    version: settings.version,
    code_digest: governance.codeOf(settings),
    said_version: readable(saidVersion),
    instructions: typeof instructions === 'string' ? harmless(instructions, maxInstructions) : null,
    declaration: {
      version: 1,
      server,
      ...(saidVersion !== null && { said_version: readable(saidVersion) ?? '' }),
      tools: Object.fromEntries(
        drafts.map(({ name, draft, digest }) => [
          name,
          { ...declarationView(draft), surface_digest: digest },
        ]),
      ),
    },
    claims: Object.fromEntries(drafts.map(({ name, claims }) => [name, claims])),
  }
}

async function accept(
  { supervisor, governance }: DeclarationPorts,
  { server, declaration, tools }: OperatorMethods['declarations/accept']['params'],
  { caller, signal }: MethodCall,
): Promise<OperatorMethods['declarations/accept']['result']> {
  const settings = supervisor.settingsOf(caller, server)
  const { declaration: declared, declaredVersion } =
    declaration === undefined ? settings : await read(declaration, settings)
  const surface = await supervisor.look(caller, server, { signal })
  const accepted = await governance.surfaces.accept(
    { server: settings, ...surface },
    { ...actor(caller), declared, declaredVersion, only: tools ?? null },
  )
  return {
    server,
    declaration_version: accepted.declarationVersion,
    accepted: [...accepted.tools.keys()],
    left_out: accepted.leftOut,
    borrowed: borrowed(accepted.tools.keys()),
  }
}

async function read(
  declaration: unknown,
  settings: ServerSettings,
): Promise<Pick<ServerSettings, 'declaration' | 'declaredVersion'>> {
  const { declarationOf } = await declarations()
  const read = declarationOf(declaration, settings)
  return { declaration: read.tools, declaredVersion: read.declaration.said_version ?? null }
}

/** What the server said that the draft rests on, and where it said nothing, that the worst was assumed. */
function claimsOf(listed: unknown, draft: ToolDeclaration): Claims[string] {
  const annotations = { ...(listed as { annotations?: object }).annotations } as Record<string, unknown>
  const isReading = !draft.sideEffects.includes('write')
  const isVouchedFor = isReading && annotations['readOnlyHint'] !== true
  const said = (hint: string): string =>
    typeof annotations[hint] === 'boolean'
      ? `claimed by the server: ${hint}: ${annotations[hint]}`
      : hint === 'readOnlyHint' && isVouchedFor
        ? vouched
        : `${hint} is absent, so the worst is assumed`
  const hints = ['readOnlyHint', 'openWorldHint', ...(isReading ? [] : ['destructiveHint'])]
  const isOpen = annotations['openWorldHint'] !== false
  const without =
    isOpen && !draft.sideEffects.includes('network') ? ['its entry has no egress, so no network'] : []
  return {
    version: 'yours to count',
    side_effects: [...hints.map(said), ...without].join('; '),
    resource_scopes: 'narrow it: paths as the server sees them',
    idempotency:
      draft.idempotency === 'unknown'
        ? said('idempotentHint')
        : isVouchedFor && annotations['idempotentHint'] !== true
          ? vouched
          : 'claimed by the server',
  }
}

const another = 'hosts know a tool of their own by this name, which this one is not'
const vouched = 'vouched for by tools.read_only of its entry'
