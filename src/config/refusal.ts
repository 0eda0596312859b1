// What is wrong with a configuration, gathered over a whole file and then said in one error, a line for each.
import { SallyportError, type ErrorCode } from '../errors.ts'
import { describe, formatPath, type Problem, type Step } from '../schema/problem.ts'
import type { Document } from './document.ts'

export interface Issue {
  readonly code: ErrorCode
  readonly document: Document
  readonly problem: Problem
}

/** Makes an issue about a value of a document; `got` is what stands there unless something better is said. */
export function issue(
  code: ErrorCode,
  document: Document,
  at: readonly Step[],
  said: { readonly got?: string; readonly expected: string; readonly mend?: string },
): Issue {
  const got = said.got ?? describe(valueAt(document.value, at))
  const problem = {
    kind: 'value',
    at,
    path: formatPath(at),
    got,
    expected: said.expected,
    mend: said.mend ?? null,
  } as const
  return { code, document, problem }
}

/** Throws one error for all issues, the first of the file in its message; does nothing where there are none. */
export function refuse(issues: readonly Issue[]): void {
  const ordered = issues
    .map((each) => ({ each, place: placeOf(each) }))
    .sort(
      (a, b) =>
        (a.place?.line ?? 0) - (b.place?.line ?? 0) || (a.place?.column ?? 0) - (b.place?.column ?? 0),
    )
  const [first] = ordered
  if (first === undefined) return
  const problems = [...new Set(ordered.map(({ each }) => formatIssue(each)))]
  const { code, document, problem } = first.each
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  throw new SallyportError(code, `${problems[0]}${more}`, {
    file: document.path,
    path: problem.path,
    line: first.place?.line ?? null,
    column: first.place?.column ?? null,
    got: problem.got,
    expected: problem.expected,
    mend: problem.mend,
    problems,
  })
}

/** One line: file, line and column, path, got, expected, mend. */
export function formatIssue(each: Issue): string {
  const { path, got, expected, mend } = each.problem
  const place = placeOf(each)
  const where = place === null ? each.document.path : `${each.document.path}:${place.line}:${place.column}`
  return `${where}: ${path === '' ? '' : `${path}: `}got ${got}, expected ${expected}${mend === null ? '' : `; ${mend}`}`
}

const placeOf = ({ document, problem }: Issue) =>
  document.locate(problem.at, problem.kind === 'unknown-key' ? 'key' : 'value')

function valueAt(value: unknown, at: readonly Step[]): unknown {
  let node = value
  for (const step of at) {
    if (typeof node !== 'object' || node === null) return undefined
    node = (node as Record<Step, unknown>)[step]
  }
  return node
}
