// What a tool's result says of itself.

/** True for a result with `isError`: the tool ran, and failed. */
function saysFailed(raw: string): boolean {
  if (!raw.includes('"isError"')) return false
  const result: unknown = JSON.parse(raw)
  return typeof result === 'object' && result !== null && 'isError' in result && result.isError === true
}

/** How a call ended that was answered with a result. */
export function kindOf(raw: string): 'result' | 'input-required' | 'tool-error' {
  if (saysFailed(raw)) return 'tool-error'
  if (!raw.includes('input_required') && !raw.includes('\\u')) return 'result'
  const result: unknown = JSON.parse(raw)
  return Reflect.get(Object(result), 'resultType') === 'input_required' ? 'input-required' : 'result'
}
