// Which call a verification makes of a real server: the one that was named, or one that is known to change nothing.
import { gateOf } from '../../call/gate.ts'
import type { ServerSettings, Settings } from '../../schema/settings.ts'

/** A call that the operator names. */
export interface NamedCall {
  readonly tool: string
  readonly args: Readonly<Record<string, unknown>>
}

export interface Choice {
  readonly method: string
  readonly params: object
  /** Why just this */
  readonly because: string
}

/**
 * Returns the call to make:
 * 1. the one that was named
 * 2. else the first tool, by name, that the operator's own declaration says only reads, idempotently and without
 *    credentials, that needs no argument, and that policy lets through unasked. What a server says of itself counts nothing
 * 3. else `ping`, which is no tool
 */
export const chooseCall = (
  server: ServerSettings,
  { rules }: Pick<Settings, 'rules'>,
  named: NamedCall | null,
): Choice => {
  if (named !== null) return { ...toolCall(named.tool, named.args), because: 'it was named with --call' }
  const gate = gateOf(rules)
  const harmless = Object.values(server.declaration ?? {})
    .filter(
      ({ sideEffects, idempotency, credentials, parameters }) =>
        sideEffects.every((effect) => effect === 'read') &&
        idempotency === 'idempotent' &&
        credentials.length === 0 &&
        needsNothing(parameters),
    )
    .map(({ name }) => name)
    .filter((tool) => gate.decide({ server, kind: 'tool', subject: tool, arguments: {} }).action === 'allow')
    .toSorted()
  const [tool] = harmless
  return tool === undefined
    ? { method: 'ping', params: {}, because: 'no tool is declared to be harmless without arguments' }
    : { ...toolCall(tool, {}), because: 'its declaration says that it only reads' }
}

const toolCall = (tool: string, args: object): Omit<Choice, 'because'> => ({
  method: 'tools/call',
  params: { name: tool, arguments: args },
})

const needsNothing = (parameters: unknown): boolean => {
  const { required = [] } = { ...(parameters as object) } as { required?: unknown }
  return Array.isArray(required) && required.length === 0
}
