// What a server's entry grants, and declarations of its tools do not have: calls go without it, whatever the entry says.
import type { ToolDeclaration } from '../../call/declaration.ts'
import type { ServerSettings } from '../../schema/settings.ts'

type Grants = Pick<ServerSettings, 'egress' | 'credentials'>
type Declared = Pick<ToolDeclaration, 'sideEffects' | 'credentials'>

/** Names the grants that none of these declarations has, as in `network and credential github`; null where each is in one. */
export function ungiven({ egress, credentials }: Grants, declared: readonly Declared[]): string | null {
  const hasNetwork = declared.some(({ sideEffects }) => sideEffects.includes('network'))
  const named = new Set(declared.flatMap((tool) => tool.credentials))
  const left = [...new Set(credentials.map(({ use }) => use))].filter((use) => !named.has(use))
  const words = [
    ...(egress.length > 0 && !hasNetwork ? ['network'] : []),
    ...left.map((use) => `credential ${use}`),
  ]
  return words.length === 0 ? null : words.join(' and ')
}
