// JSON.parse, but for what V8 gets wrong in it: a key that is written with an escape can become another key.
import { behindLiteral } from './long-text.ts'

/**
 * The value of a JSON text, as `JSON.parse` should give it.
 *
 * V8 12.8 and later keep to a key that followed on the same keys in an earlier object when the next one is as long and *its
 * source* begins with it: once somebody has said {"a":1,"t\\u0":1}, {"a":1,"t\u0065xt":1} has a key `t\u0`, and no `text`
 * (https://github.com/nodejs/node/issues/63785). So whoever speaks twice could have rules, schemas and persons look at other
 * arguments than the server. What has such a key is read here, once V8 has said that it is JSON.
 *
 * @throws SyntaxError for what is not JSON
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  return text.includes('\\') && hasEscapedKey(text) ? read(text) : value
}

/** Of a text that is JSON: a backslash stands in no other place of it than within a string. */
function hasEscapedKey(text: string): boolean {
  for (let at = text.indexOf('\\'); at !== -1;) {
    const end = behindLiteral(text, at)
    if (text.charCodeAt(behindSpace(text, end)) === colon) return true
    at = text.indexOf('\\', end)
  }
  return false
}

/** What a text says that is JSON; of a key that is said twice the last counts, in the place of the first. Depth costs no stack. */
function read(text: string): unknown {
  const root: unknown[] = []
  const open: object[] = [root]
  let key = ''
  let at = 0
  const put = (value: unknown): void => {
    const inner = open[open.length - 1]
    if (Array.isArray(inner)) inner.push(value)
    else if (key === '__proto__') Object.defineProperty(inner, key, { value, ...ordinary })
    else (inner as Record<string, unknown>)[key] = value
  }
  const begin = (container: object): void => {
    put(container)
    open.push(container)
  }
  while ((at = behindSpace(text, at)) < text.length) {
    const start = at
    at += 1
    switch (text.charAt(start)) {
      case '"': {
        at = behindLiteral(text, start)
        const said = stringOf(text, start, at)
        const next = behindSpace(text, at)
        if (text.charCodeAt(next) === colon) [key, at] = [said, next + 1]
        else put(said)
        break
      }
      case '{':
        begin({})
        break
      case '[':
        begin([])
        break
      case '}':
      case ']':
        open.pop()
        break
      case ',':
        break
      default:
        at = behindWord(text, at)
        put(JSON.parse(text.slice(start, at)))
    }
  }
  return root[0]
}

const ordinary = { writable: true, enumerable: true, configurable: true }

/** A short one is copied; a long one would hold on to all of the text, were it a slice of that. */
function stringOf(text: string, start: number, end: number): string {
  const inner = text.slice(start + 1, end - 1)
  if (inner.length <= copied && !inner.includes('\\')) return inner
  return JSON.parse(text.slice(start, end)) as string
}

/** Longest slice that V8 copies, characters */
const copied = 12

function behindSpace(text: string, at: number): number {
  let here = at
  while (isSpace(text.charCodeAt(here))) here += 1
  return here
}

/** Offset behind a number, or a literal name. */
function behindWord(text: string, at: number): number {
  let here = at
  for (; here < text.length; here++) {
    const char = text.charCodeAt(here)
    if (char === comma || char === closingBrace || char === closingBracket || isSpace(char)) break
  }
  return here
}

const isSpace = (char: number): boolean => char === 32 || char === 10 || char === 13 || char === 9
const comma = 44
const colon = 58
const closingBracket = 93
const closingBrace = 125
