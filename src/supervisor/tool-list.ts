// Cuts the tools that policy denies out of a `tools/list` answer, and touches no other byte.
import { SallyportError } from '../errors.ts'
import { decodeString, elements, type Member, members, type Span } from '../lib/json-scan.ts'
import { spellings } from '../lib/key-folding.ts'
import { confusableIn } from './envelope.ts'
import { utf8 } from './utf8.ts'

const resultKeys = spellings(['tools', 'cacheScope'])
const toolKeys = spellings(['name'])

/** What a list became. */
export interface FilteredList {
  /** The text from `start` to `end`, or null when nothing was cut */
  readonly text: string | null
  readonly hidden: number
}

/**
 * Filters the message from `start` to `end`, whose `result` is given. A tool whose name two readers could take
 * differently is cut. A result that two readers could take for different lists throws ERR_MESSAGE_AMBIGUOUS.
 */
export function filterTools(
  text: string,
  { start, end }: Span,
  result: Member,
  shows: (tool: string, json: string) => boolean,
): FilteredList {
  if (text.charCodeAt(result.start) !== 123) return { text: null, hidden: 0 }
  const found = result.inner
  const tools = only(found, 'tools')
  if (tools === null || text.charCodeAt(tools.start) !== 91) return { text: null, hidden: 0 }
  const all = elements(text, tools.start, tools.end)
  const kept = all.filter((element) => isShown(text, element, shows))
  const hidden = all.length - kept.length
  if (hidden === 0) return { text: null, hidden }
  const edits = [{ start: tools.start, end: tools.end, text: rejoin(text, tools, all, kept) }]
  const scope = only(found, 'cacheScope')
  // A list that was cut for one principal is not for every cache on the way.
  if (scope !== null) edits.push({ start: scope.start, end: scope.end, text: '"private"' })
  return { text: splice(text, start, end, edits), hidden }
}

function isShown(text: string, element: Span, shows: (tool: string, json: string) => boolean): boolean {
  if (text.charCodeAt(element.start) !== 123) return false
  const found = members(text, element.start, element.end)
  const names = found.filter(({ key }) => key === 'name')
  const [name] = names
  if (name === undefined || names.length > 1 || text.charCodeAt(name.start) !== 34) return false
  if (confusableIn(found, toolKeys) !== null) return false
  return shows(decodeString(text.slice(name.start, name.end)), utf8(text, element.start, element.end))
}

function only(found: readonly Member[], key: string): Member | null {
  const same = found.filter((member) => member.key === key)
  const other = confusableIn(found, resultKeys)
  if (same.length > 1 || other !== null) {
    throw new SallyportError(
      'ERR_MESSAGE_AMBIGUOUS',
      `the server's tools/list result could be read in two ways: see ${JSON.stringify(other ?? key)}`,
    )
  }
  return same[0] ?? null
}

/** Keeps the bytes before the first and behind the last element, and the separator before each element that stays. */
function rejoin(text: string, array: Span, all: readonly Span[], kept: readonly Span[]): string {
  const [first] = all
  const last = all.at(-1)
  if (first === undefined || last === undefined || kept.length === 0) return '[]'
  let joined = text.slice(array.start, first.start)
  for (const [index, element] of kept.entries()) {
    if (index > 0) joined += text.slice(all[all.indexOf(element) - 1]?.end ?? element.start, element.start)
    joined += text.slice(element.start, element.end)
  }
  return joined + text.slice(last.end, array.end)
}

function splice(
  text: string,
  start: number,
  end: number,
  edits: readonly (Span & { text: string })[],
): string {
  let result = ''
  let from = start
  for (const edit of edits.toSorted((a, b) => a.start - b.start)) {
    result += text.slice(from, edit.start) + edit.text
    from = edit.end
  }
  return result + text.slice(from, end)
}
