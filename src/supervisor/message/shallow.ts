// What an object says of itself in a few short members, whatever else is in it.
import { members } from '../../lib/json-scan.ts'
import { isLong } from '../../lib/long-text.ts'
import { latin1 } from '../../lib/one-way.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { utf8 } from './utf8.ts'

/** Bytes of the longest member of a long text that is read */
const longestMember = 65_536

/**
 * The object that a JSON text holds, or any other value of it. Of one that is long only these members are read, and only where
 * they are short: null stands in the place of one that is longer.
 */
export function readShallow(json: string, keys: ReadonlySet<string>): unknown {
  if (!isLong(json)) return parseJson(json)
  const text = latin1(json)
  if (!/^\s*\{/.test(text)) return null
  const found = members(text, 0, text.length).filter(({ key }) => keys.has(key))
  return Object.fromEntries(
    found.map(({ key, start, end }) => [
      key,
      end - start > longestMember ? null : parseJson(utf8(text, start, end)),
    ]),
  )
}
