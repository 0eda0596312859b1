// Whether a tool only reads, by who says so.

/**
 * True where the server claims it; where it says nothing, as the operator vouches. One that claims to destroy is not
 * vouched for.
 */
export function readsOnly(annotations: unknown, isVouchedFor: () => boolean): boolean {
  const { readOnlyHint, destructiveHint } = { ...(annotations as object) } as Record<string, unknown>
  return typeof readOnlyHint === 'boolean' ? readOnlyHint : destructiveHint !== true && isVouchedFor()
}
