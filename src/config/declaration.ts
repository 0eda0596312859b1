// A declaration as a file: what the operator says of each tool of one server, held to what that server was given.
import type { Step } from '../schema/problem.ts'
import type { DeclaredTool } from '../schema/settings.ts'
import type { Declaration } from '../schema/types.gen.ts'
import { validate } from '../schema/validate.ts'
import { SallyportError } from '../errors.ts'
import { type Granted, isInside, missingGrant, ownFolders } from './containment.ts'
import { formatDocument, inMemory, parseDocument, type Document } from './document.ts'
import { onNamed } from './named-file.ts'
import { readTrusted } from './read.ts'
import { issue, refuse, type Issue } from './refusal.ts'

/**
 * Reads a declaration file. Everything that is wrong with it is in one ERR_CONFIG_INVALID, with file and line: fields
 * that are missing, another server, scopes outside of what the sandbox has, credentials that the server was not given.
 */
export async function loadDeclaration(
  path: string,
  owners: readonly number[],
  server: Granted,
): Promise<{ readonly declaration: Declaration; readonly tools: Readonly<Record<string, DeclaredTool>> }> {
  const mend = `draft one with sallyport declare ${server.name}`
  const named = { path, access: 'read', code: 'ERR_CONFIG_NOT_FOUND', mend } as const
  const file = await onNamed(named, () => readTrusted(path, owners))
  return readDeclaration(parseDocument(file.path, file.text), server)
}

/** The same, of a value that never was a file here. */
export const declarationOf = (value: unknown, server: Granted): ReturnType<typeof readDeclaration> =>
  readDeclaration(inMemory('the declaration', value), server)

/** Writes a declaration as YAML; `claims` are comments, tool -> field -> what the server said of it. */
export function formatDeclaration(
  declaration: Declaration,
  claims: Readonly<Record<string, Readonly<Record<string, string>>>>,
  instructions: string | null = null,
): string {
  const claimAt = (at: readonly Step[]): string | null => {
    const [top, tool, field, first] = at
    const isPlace = at.length === 3 || (at.length === 4 && first === 0)
    if (top !== 'tools' || !isPlace) return null
    const said = claims[String(tool)]
    // What is said of its name stands with the first of its fields.
    const all = [field === 'version' ? said?.['name'] : undefined, said?.[String(field)]]
    const words = all.filter((one) => one !== undefined)
    return words.length === 0 ? null : words.join('; ').replaceAll(unseen, ' ')
  }
  const head = [
    '# A draft: what the server says of itself, and the worst where it says nothing. Claims are marked.',
    `# Read it, mend it, then: sallyport accept ${declaration.server} --declaration THIS_FILE`,
    ...(instructions === null
      ? []
      : ['# An acceptance covers its instructions, too, which go to the model:', ...quoted(instructions)]),
  ]
  return `${head.join('\n')}\n${formatDocument(declaration, claimAt)}`
}

const unseen = /[\p{C}\p{Zl}\p{Zp}\p{DI}]+/gu

/** Lines of comment that hold a text and nothing else. */
const quoted = (text: string): readonly string[] =>
  (text.replaceAll(unseen, ' ').match(/.{1,110}(?= |$)|.{1,110}/gu) ?? []).map((line) => `#   ${line.trim()}`)

function readDeclaration(
  document: Document,
  server: Granted,
): { readonly declaration: Declaration; readonly tools: Readonly<Record<string, DeclaredTool>> } {
  const validated = validate('declaration', document.value)
  if (!validated.ok) {
    refuse(validated.problems.map((problem): Issue => ({ code: 'ERR_CONFIG_INVALID', document, problem })))
    throw new SallyportError('ERR_INTERNAL', `${document.path}: refused without a reason`)
  }
  const declaration = validated.value
  refuse([...checkServer(declaration, document, server), ...checkGrants(declaration, document, server)])
  return { declaration, tools: toolsOf(declaration) }
}

function checkServer({ server }: Declaration, document: Document, { name }: Granted): readonly Issue[] {
  if (server === name) return []
  const said = { expected: name, mend: 'name the declaration of this server, or mend the name' }
  return [issue('ERR_CONFIG_INVALID', document, ['server'], said)]
}

function checkGrants({ tools }: Declaration, document: Document, granted: Granted): readonly Issue[] {
  const { name, mounts, egress, credentials: injections } = granted
  const places = [...ownFolders, ...mounts.map(({ target }) => target)]
  const names = [...new Set(injections.map(({ use }) => use))]
  return Object.entries(tools).flatMap(
    ([tool, { side_effects: effects, resource_scopes: scopes, credentials }]) => [
      ...effects.flatMap((effect, index) => {
        const missing = missingGrant(effect, granted, null)
        if (missing === null) return []
        const said = {
          got: effect,
          expected: `a class that its sandbox grants, and ${missing}`,
          mend: `grant it to ${name}, or remove it`,
        }
        return [issue('ERR_CONFIG_INVALID', document, ['tools', tool, 'side_effects', index], said)]
      }),
      ...scopes.flatMap((scope, index) => {
        if (isInside(scope, granted)) return []
        const said = scope.startsWith('/')
          ? { expected: `a path below ${places.join(', ')}`, mend: `mount it for ${name}, or remove it` }
          : egress.length === 0
            ? { expected: `no host, since ${name} has no egress`, mend: 'remove it' }
            : {
                expected: `host:port of its egress (${egress.map(({ host, port }) => `${host}:${port}`).join(', ')})`,
                mend: `list it in the egress of ${name}, or remove it`,
              }
        return [issue('ERR_CONFIG_INVALID', document, ['tools', tool, 'resource_scopes', index], said)]
      }),
      ...credentials.flatMap((credential, index) => {
        if (names.includes(credential)) return []
        const said =
          names.length === 0
            ? { expected: `no credential, since ${name} was given none`, mend: 'remove it' }
            : {
                got: credential,
                expected: `one of ${names.join(', ')}`,
                mend: `give it to ${name}, or remove it`,
              }
        return [issue('ERR_CONFIG_INVALID', document, ['tools', tool, 'credentials', index], said)]
      }),
    ],
  )
}

function toolsOf({ tools }: Declaration): Readonly<Record<string, DeclaredTool>> {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]): [string, DeclaredTool] => [
      name,
      {
        name,
        version: tool.version,
        parameters: tool.parameters,
        sideEffects: tool.side_effects,
        resourceScopes: tool.resource_scopes,
        credentials: tool.credentials,
        output: tool.output,
        idempotency: tool.idempotency,
        failureModes: tool.failure_modes,
        surfaceDigest: tool.surface_digest ?? null,
      },
    ]),
  )
}
