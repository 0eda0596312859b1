// What a tool's result says of itself.

/** True for a result with `isError`: the tool ran, and failed. */
export function saysFailed(raw: string): boolean {
  if (!raw.includes('"isError"')) return false
  const result: unknown = JSON.parse(raw)
  return typeof result === 'object' && result !== null && 'isError' in result && result.isError === true
}
