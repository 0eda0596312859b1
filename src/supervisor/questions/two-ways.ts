// Whether what a person would be asked is one question to every host: readers differ in which of two keys counts, and in which are one.
import { decodeString, JsonScanError, type Member, members, type Span } from '../../lib/json-scan.ts'
import { confusable, type Spellings, spellings } from '../../lib/key-folding.ts'
import { printable } from '../message/unavailable.ts'

const askedIn = spellings(['mode', 'message', 'url', 'elicitationId', 'requestedSchema'])
const formIn = spellings(['type', 'properties', 'required'])
const modes: ReadonlySet<string> = new Set(['form', 'url'])
const inside: ReadonlySet<string> = new Set(['requestedSchema'])

/** Why a host could read another question in the params of an elicitation than is judged; null where none could. The text is in latin1 reading. */
export function readTwoWays(text: string, params: Span | null): string | null {
  if (params === null || text.charCodeAt(params.start) !== 123) return null
  try {
    const found = members(text, params.start, params.end, { unique: true, inside })
    const form = found.find(({ key }) => key === 'requestedSchema')?.inner ?? []
    return spelt(found, askedIn) ?? spelt(form, formIn) ?? modeless(text, found)
  } catch (thrown) {
    if (!(thrown instanceof JsonScanError)) throw thrown
    return `its params can be read in two ways: ${printable(thrown.message)}`
  }
}

function spelt(found: readonly Member[], known: Spellings): string | null {
  const keys = found.map(({ key }) => key)
  const key = confusable(keys, known)
  return key === null
    ? null
    : `its params can be read in two ways: a key is ${printable(JSON.stringify(key).slice(0, 80))}`
}

/** A host that does not know a mode may take it for one that it does. */
function modeless(text: string, found: readonly Member[]): string | null {
  const mode = found.find(({ key }) => key === 'mode')
  if (mode === undefined) return null
  const said = text.slice(mode.start, mode.end)
  return said.startsWith('"') && modes.has(decodeString(said)) ? null : 'its mode is neither form nor url'
}
