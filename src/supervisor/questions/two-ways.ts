// Whether what a person would be asked is one question to every host: readers differ in which of two keys counts, and in which are one.
import {
  decodeString,
  elements,
  JsonScanError,
  type Member,
  members,
  type Span,
} from '../../lib/json-scan.ts'
import { confusable, type Spellings, spellings } from '../../lib/key-folding.ts'
import { printable } from '../message/unavailable.ts'

const errorIn = spellings(['code', 'message', 'data'])
const dataIn = spellings(['elicitations'])
const askedIn = spellings(['mode', 'message', 'url', 'elicitationId', 'requestedSchema'])
const formIn = spellings(['type', 'properties', 'required'])
const fieldIn = spellings(['type', 'title', 'description', 'format', 'properties', 'items'])
const modes: ReadonlySet<string> = new Set(['form', 'url'])
/** Members of params, form or one field, those of all fields, and characters of a key, that are looked at, each of them closely */
const most = { members: 64, ofFields: 4096, key: 256 } as const

/** Why a host could read another question in the params of an elicitation than is judged; null where none could. The text is in latin1 reading. */
export function readTwoWays(text: string, params: Span | null): string | null {
  if (!isObject(text, params)) return null
  try {
    const found = members(text, params.start, params.end, { unique: true, bounded: true })
    return (
      spelt(found, askedIn) ??
      modeless(text, found) ??
      readInForm(text, objectIn(text, found, 'requestedSchema'))
    )
  } catch (thrown) {
    if (!(thrown instanceof JsonScanError)) throw thrown
    return `what it says can't be read in one way: ${printable(thrown.message)}`
  }
}

/**
 * The same of an error that sends a person to addresses: each in it is one address, to be opened. `error` are its members, of which
 * one may stand twice.
 */
export function sendsTwoWays(text: string, error: readonly Member[]): string | null {
  if (new Set(error.map(({ key }) => key)).size < error.length) return 'its error has a key twice'
  try {
    const found = spelt(error, errorIn)
    return found ?? sendsIn(text, error.find(({ key }) => key === 'data') ?? null)
  } catch (thrown) {
    if (!(thrown instanceof JsonScanError)) throw thrown
    return `its error can't be read in one way: ${printable(thrown.message)}`
  }
}

function sendsIn(text: string, data: Span | null): string | null {
  if (!isObject(text, data)) return null
  const found = members(text, data.start, data.end, { unique: true, bounded: true })
  const list = found.find(({ key }) => key === 'elicitations')
  const unclear = spelt(found, dataIn)
  if (unclear !== null || list === undefined || text.charCodeAt(list.start) !== 91) return unclear
  for (const one of elements(text, list.start, list.end, { bounded: true })) {
    const why = isObject(text, one) ? (readTwoWays(text, one) ?? notSent(text, one)) : null
    if (why !== null) return why
  }
  return null
}

const notSent = (text: string, { start, end }: Span): string | null =>
  members(text, start, end, { bounded: true }).some(
    ({ key, ...at }) => key === 'mode' && /^"url"$/.test(text.slice(at.start, at.end)),
  )
    ? null
    : 'it asks by an error for something else than that an address is opened'

function readInForm(text: string, form: readonly Member[]): string | null {
  const unclear = spelt(form, formIn)
  if (unclear !== null) return unclear
  let left: number = most.ofFields
  for (const field of objectIn(text, form, 'properties')) {
    const found = isObject(text, field) ? members(text, field.start, field.end, { bounded: true }) : []
    left -= 1 + found.length
    if (left < 0) return `its fields have more than ${most.ofFields} members`
    const twice = spelt(found, fieldIn)
    if (twice !== null) return twice
  }
  return null
}

const isObject = (text: string, span: Span | null): span is Span =>
  span !== null && text.charCodeAt(span.start) === 123

function objectIn(text: string, found: readonly Member[], key: string): readonly Member[] {
  const span = found.find((member) => member.key === key) ?? null
  return isObject(text, span) ? members(text, span.start, span.end, { bounded: true }) : []
}

function spelt(found: readonly Member[], known: Spellings): string | null {
  if (found.length > most.members)
    return `there are more than ${most.members} members in what it says, its form or a field`
  const keys = found.map(({ key }) => key)
  if (keys.some(({ length }) => length > most.key)) return `a key of it has more than ${most.key} characters`
  const key = keys.includes('__proto__') ? '__proto__' : confusable(keys, known)
  return key === null
    ? null
    : `what it says can be read in two ways: a key is ${printable(JSON.stringify(key).slice(0, 80))}`
}

/** A host that does not know a mode may take it for one that it does; without one, where an address is, for that of addresses. */
function modeless(text: string, found: readonly Member[]): string | null {
  const said = (key: string): string => {
    const value = found.find((member) => member.key === key)
    const written = value === undefined ? '' : text.slice(value.start, value.end)
    return written === 'null' || written === '""' ? '' : written
  }
  const mode = said('mode')
  if (mode === '') {
    const isAddress = said('url') !== '' || said('elicitationId') !== ''
    return isAddress ? 'it has an address, and no mode that says so' : null
  }
  return mode.startsWith('"') && modes.has(decodeString(mode)) ? null : 'its mode is neither form nor url'
}
