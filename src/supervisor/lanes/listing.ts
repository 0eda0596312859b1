// Cuts what policy denies out of the answer to a list, and touches no other byte.
import { SallyportError } from '../../errors.ts'
import {
  decodeString,
  elements,
  JsonScanError,
  type Member,
  members,
  type Span,
} from '../../lib/json-scan.ts'
import { isLong } from '../../lib/long-text.ts'
import { allIn, parseOneWay } from '../../lib/one-way.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { type Spellings, spellings } from '../../lib/key-folding.ts'
import type { Gate } from '../../schema/gate.ts'
import type { HostRequest } from './conversation.ts'
import { confusableWithin } from '../message/envelope.ts'
import { utf8 } from '../message/utf8.ts'
import type { Wire } from './wire.ts'

/** Where a method's result holds its list, and which member tells one entry from another. */
interface Shape {
  readonly list: string
  readonly key: string
  readonly listKeys: Spellings
  readonly entryKeys: Spellings
}

const shape = (list: string, key: string): Shape => ({
  list,
  key,
  listKeys: spellings([list, 'cacheScope']),
  entryKeys: spellings([key]),
})

const shapes: ReadonlyMap<string, Shape> = new Map([
  ['tools/list', shape('tools', 'name')],
  ['prompts/list', shape('prompts', 'name')],
  ['resources/list', shape('resources', 'uri')],
  ['tasks/list', shape('tasks', 'taskId')],
  ['resources/templates/list', shape('resourceTemplates', 'uriTemplate')],
])

/** What a list became. */
export interface FilteredList {
  /** The text from `start` to `end`, or null when nothing was cut */
  readonly text: string | null
  readonly hidden: number
}

/** Says whether an entry is shown: by its name, null where two readers could take it differently, and its JSON. */
type Shows = (name: string | null, json: string) => boolean

/**
 * Filters the answer to `method` from `start` to `end`, whose `result` is given. A result that two readers could take for
 * different lists throws ERR_MESSAGE_AMBIGUOUS, one with something else in the list's place ERR_SERVER_PROTOCOL.
 */
export function filterList(
  method: string,
  text: string,
  { start, end }: Span,
  result: Member,
  shows: Shows,
): FilteredList {
  const nothing = { text: null, hidden: 0 }
  const found = shapes.get(method)
  if (found === undefined) return nothing
  const only = (key: string): Member | null => onlyOne(method, result.inner, key, found.listKeys)
  const list = only(found.list)
  if (list === null) return nothing
  if (text.charCodeAt(list.start) !== 91) {
    const what = `the server's ${method} result has something else than a list as ${found.list}`
    throw new SallyportError('ERR_SERVER_PROTOCOL', what)
  }
  expectReadable(method, text, result)
  const all = elements(text, list.start, list.end)
  const shown = (entry: Span): boolean =>
    shows(nameOf(text, entry, found), utf8(text, entry.start, entry.end))
  const kept = new Set(all.filter(shown))
  const hidden = all.length - kept.size
  if (hidden === 0) return nothing
  const edits = [{ start: list.start, end: list.end, text: rejoin(text, list, all, kept) }]
  const scope = only('cacheScope')
  // A list that was cut for one principal is not for every cache on the way.
  if (scope !== null) edits.push({ start: scope.start, end: scope.end, text: '"private"' })
  return { text: splice(text, start, end, edits), hidden }
}

/** What of a list is shown: what can be had; null where all of it is. */
export function shownIn({ route, method }: HostRequest, wire: Wire): Shows | null {
  const { gate, server } = wire
  if (route === 'filter')
    return (tool, json) => {
      const listed = parseOneWay(json)
      if (tool !== null && listed !== null) return gate.lists(server, tool) && wire.shows(listed)
      // What was accepted under a name of it is said to have changed, and is called no more.
      for (const name of namesIn(json)) wire.shows(asNobodyCanRead(name))
      return false
    }
  if (method === 'tasks/list') return (task) => task !== null && wire.ownsTask(task)
  const subject = method === 'prompts/list' ? 'prompts/get' : 'resources/read'
  if (!wire.offers(subject)) return () => false
  const byRules = shownByRules(gate, server, method, subject)
  if (method === 'resources/list') return byRules
  return (name, json) => byRules?.(name, json) !== false && wire.isKnown(method, json)
}

/** All that an entry calls itself. */
const namesIn = (json: string): readonly unknown[] => allIn(json, 'name').map(parseJson)

/** A tool of that name which is none, for what says a key in two spellings. */
const asNobodyCanRead = (name: unknown): object => ({ name, Name: name })

/** What of a list is shown by the rules about the things in it; null where they hide nothing. */
function shownByRules(
  gate: Gate,
  server: Parameters<Gate['hides']>[0],
  method: string,
  subject: string,
): Shows | null {
  const isHidden = gate.hides(server, subject)
  if (isHidden === null) return null
  if (method === 'prompts/list') return (name) => !isHidden(name === null ? null : { name })
  if (method === 'resources/list') return (uri) => !isHidden(uri === null ? null : { uri })
  return (template) => !expansions(template).every((uri) => isHidden(uri === null ? null : { uri }))
}

/**
 * A template can make many addresses: it is hidden when nothing that it can make may be read. No rule holds these fillings
 * by chance, so whatever matches them all matches what the template itself says.
 */
const fillings = ['', 'q7Zk1v', 'q7Zk1v0w/Xb3n', 'q7Zk1v/0wXb3/nq']
const expansions = (template: string | null): readonly (string | null)[] =>
  template === null ? [null] : fillings.map((filling) => template.replaceAll(/\{[^{}]*\}/g, filling))

function nameOf(text: string, entry: Span, { key, entryKeys }: Shape): string | null {
  if (text.charCodeAt(entry.start) !== 123) return null
  const found = members(text, entry.start, entry.end)
  const names = found.filter((member) => member.key === key)
  const [name] = names
  if (name === undefined || names.length > 1 || text.charCodeAt(name.start) !== 34) return null
  if (confusableWithin(found, entryKeys) !== null) return null
  return decodeString(text.slice(name.start, name.end))
}

/** Each entry is looked at closely, so that there may be no more in them than of a host's message is read. */
function expectReadable(method: string, text: string, { start, end }: Span): void {
  if (!isLong(text)) return
  try {
    members(text, start, end, { bounded: true })
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error
    throw new SallyportError(
      'ERR_RESULT_TOO_LARGE',
      `the server's ${method} result cannot be taken: ${error.message}`,
    )
  }
}

function onlyOne(method: string, found: readonly Member[], key: string, known: Spellings): Member | null {
  const same = found.filter((member) => member.key === key)
  const other = confusableWithin(found, known)
  if (same.length > 1 || other !== null) {
    throw new SallyportError(
      'ERR_MESSAGE_AMBIGUOUS',
      `the server's ${method} result could be read in two ways: see ${JSON.stringify(other ?? key)}`,
    )
  }
  return same[0] ?? null
}

/** Keeps the bytes before the first and behind the last element, and the separator before each element that stays. */
function rejoin(text: string, array: Span, all: readonly Span[], kept: ReadonlySet<Span>): string {
  const [first] = all
  const last = all.at(-1)
  if (first === undefined || last === undefined || kept.size === 0) return '[]'
  const opening = text.slice(array.start, first.start)
  let joined = opening
  let before = first
  for (const element of all) {
    const separator = joined === opening ? '' : text.slice(before.end, element.start)
    if (kept.has(element)) joined += separator + text.slice(element.start, element.end)
    before = element
  }
  return joined + text.slice(last.end, array.end)
}

/** The text from `start` to `end` with other text at some places. */
export function splice(
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
