// The assertions of a profile or of a test file: read with the line that states each, and refused where one says nothing.
import type { ErrorCode } from '../errors.ts'
import { parseAssertion, type StatedAssertion } from '../schema/assertion.ts'
import type { Document } from './document.ts'
import { issue, type Issue } from './refusal.ts'

interface Line {
  readonly assert: string
  readonly reason: string
}

/** One issue for each line that is no assertion. */
export function checkAssertions(
  code: ErrorCode,
  document: Document,
  lines: readonly Line[],
): readonly Issue[] {
  return lines.flatMap(({ assert }, index) => {
    const parsed = parseAssertion(assert)
    if (parsed.ok) return []
    const { got, expected, mend } = parsed.problem
    const said = { got, expected, ...(mend === null ? {} : { mend }) }
    return [issue(code, document, ['assertions', index, 'assert'], said)]
  })
}

/** The assertions of lines that were checked. */
export function statedIn(document: Document, lines: readonly Line[]): readonly StatedAssertion[] {
  return lines.flatMap(({ assert, reason }, index) => {
    const parsed = parseAssertion(assert)
    if (!parsed.ok) return []
    const line = document.locate(['assertions', index], 'value')?.line ?? 1
    return [{ assertion: parsed.assertion, text: assert, reason, file: document.path, line }]
  })
}
