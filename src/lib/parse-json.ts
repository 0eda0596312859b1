// JSON.parse, but for what V8 gets wrong in it: a key that is written with an escape can become another key.
import { randomBytes } from 'node:crypto'

/**
 * The value of a JSON text, as `JSON.parse` should give it.
 *
 * V8 12.8 and later keep to a key that followed on the same keys in an earlier object when the next one is as long and *its
 * source* begins with it: once somebody has said {"a":1,"t\\u0":1}, {"a":1,"t\u0065xt":1} has a key `t\u0`, and no `text`
 * (https://github.com/nodejs/node/issues/63785). So whoever speaks twice could have rules, schemas and persons look at other
 * arguments than the server. Here a key with an escape stands under a name that nobody knows until all has been parsed.
 *
 * @throws SyntaxError for what is not JSON
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  const keys = text.includes('\\') ? escapedKeys(text) : []
  return keys.length === 0 ? value : withKeys(JSON.parse(marked(text, keys)), keys)
}

/** A key with an escape in it: where its literal stands, and what it says. */
interface EscapedKey {
  readonly start: number
  readonly end: number
  readonly key: string
}

/** Those of a text that is JSON: a backslash stands in no other place of it than within a string. */
function escapedKeys(text: string): readonly EscapedKey[] {
  const found: EscapedKey[] = []
  for (let at = text.indexOf('\\'); at !== -1;) {
    const end = behindString(text, at)
    if (text.charCodeAt(behindSpace(text, end)) === colon) {
      const start = text.lastIndexOf('"', at)
      found.push({ start, end, key: JSON.parse(text.slice(start, end)) as string })
    }
    at = text.indexOf('\\', end)
  }
  return found
}

/** Offset behind the string that has the backslash at `at` in it. */
function behindString(text: string, at: number): number {
  let here = at
  for (let char = backslash; char !== quote; char = text.charCodeAt(here)) here += char === backslash ? 2 : 1
  return here + 1
}

function behindSpace(text: string, at: number): number {
  let here = at
  while (spaces.has(text.charCodeAt(here))) here += 1
  return here
}

const quote = 34
const backslash = 92
const colon = 58
const spaces = new Set([32, 9, 10, 13])

/** Begins the name that a key has until it is put there; nobody can write what nobody was told */
const mark = randomBytes(16).toString('hex')

function marked(text: string, keys: readonly EscapedKey[]): string {
  const pieces = keys.map(({ start }, n) => `${text.slice(keys[n - 1]?.end ?? 0, start)}"${mark}${n}"`)
  return pieces.join('') + text.slice(keys.at(-1)?.end)
}

/** Puts the keys in the place of their names; of the same key twice the last counts, as in `JSON.parse`. */
function withKeys(value: unknown, keys: readonly EscapedKey[]): unknown {
  const containers: object[] = []
  const reach = (inner: unknown): void => {
    if (typeof inner === 'object' && inner !== null) containers.push(inner)
  }
  reach(value)
  for (const container of containers) {
    if (!Array.isArray(container)) rename(container, keys)
    for (const inner of Object.values(container)) reach(inner)
  }
  return value
}

function rename(object: object, keys: readonly EscapedKey[]): void {
  const members = Object.entries(object) as [string, unknown][]
  if (!members.some(([name]) => name.startsWith(mark))) return
  for (const [name] of members) Reflect.deleteProperty(object, name)
  for (const [name, value] of members) {
    const key = name.startsWith(mark) ? keys[Number(name.slice(mark.length))]?.key : undefined
    Object.defineProperty(object, key ?? name, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    })
  }
}
