// A value against one compiled schema: the typed value, or everything that is wrong with it.
import { problemFrom, type Check, type Problem } from './problem.ts'

export type Validated<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Writes the defaults of the schema into the value, which is nobody else's. Throws where `what` has no check. */
export function checked<T>(what: string, check: Check | undefined, value: unknown): Validated<T> {
  if (check === undefined) throw new Error(`there is no check of ${what}; run npm run build`)
  if (check(value)) return { ok: true, value: value as T }
  // A key's own error says it all; ajv adds a second one about the mapping that holds the key.
  const findings = (check.errors ?? []).filter(({ keyword }) => keyword !== 'propertyNames')
  return { ok: false, problems: findings.map((finding) => problemFrom(finding, value)) }
}
