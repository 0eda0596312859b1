// The beginning of what is too long to be answered at once, in the shape of a result.
import {
  decodeString,
  elements,
  JsonScanError,
  type Member,
  members,
  skipSpace,
  type Span,
} from '../../lib/json-scan.ts'
import { isLong } from '../../lib/long-text.ts'
import { latin1 } from '../../lib/one-way.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { saidBy } from './tool-result.ts'

/** At most `limitBytes` of UTF-8, ending between two characters. */
export function headOf(text: string, limitBytes: number): string {
  const bytes = Buffer.from(text.slice(0, limitBytes))
  return new TextDecoder().decode(bytes.subarray(0, limitBytes), { stream: true })
}

/** What the result's text blocks say, or its JSON where it has none, cut so that `data` is at most `limitBytes` long. */
export function resultHead(
  json: string,
  limitBytes: number,
): { readonly data: object; readonly text: string } {
  const said = textsOf(json, limitBytes)
  const whole = said === '' ? json : said
  const isError = saidBy(json).isError === true ? { isError: true } : {}
  return fitted(whole, limitBytes, (text) => ({ content: [{ type: 'text', text }], ...isError }))
}

/** An error as a server answers with one, of which all but its number and the beginning of its words is left out. */
export const errorHead = (code: number, message: string, limitBytes: number): object =>
  fitted(message, limitBytes, (text) => ({ code, message: text })).data

/** As much of a text as has room in what is made of it. */
function fitted(
  whole: string,
  limitBytes: number,
  dataOf: (text: string) => object,
): { readonly data: object; readonly text: string } {
  for (let limit = limitBytes; ;) {
    const text = headOf(whole, limit)
    const data = dataOf(text)
    const size = Buffer.byteLength(JSON.stringify(data))
    if (size <= limitBytes || limit === 0) return { data, text }
    limit = Math.max(0, Math.min(limit - 1, Math.floor((limit * (limitBytes - 64)) / size)))
  }
}

/** The texts of a result's blocks, a line each; of a long result so many that they have at least `most` characters. */
export function textsOf(json: string, most = Infinity): string {
  const texts: string[] = []
  let length = 0
  for (const text of isLong(json) ? longTexts(json) : textsIn(parseJson(json))) {
    if (length > most) break
    texts.push(text)
    length += text.length
  }
  return texts.join('\n')
}

function textsIn(result: unknown): readonly string[] {
  const content: unknown = Reflect.get(Object(result), 'content')
  return (Array.isArray(content) ? (content as unknown[]) : []).flatMap((block) => {
    const text: unknown = Reflect.get(Object(block), 'text')
    return typeof text === 'string' ? [text] : []
  })
}

/** Blocks are read one by one; where there are more than a list that is looked at may have, it is no list of texts. */
function* longTexts(json: string): Generator<string, undefined> {
  const text = latin1(json)
  const content = lastOf(text, { start: 0, end: text.length }, 'content')
  if (content === undefined || text[content.start] !== '[') return
  for (const block of listed(text, content)) {
    const said = lastOf(text, block, 'text')
    if (said !== undefined && text[said.start] === '"') yield decodeString(text.slice(said.start, said.end))
  }
}

/** What JSON readers take where an object says a key twice. */
const lastOf = (text: string, { start, end }: Span, key: string): Member | undefined =>
  text[skipSpace(text, start)] === '{'
    ? members(text, start, end).findLast((member) => member.key === key)
    : undefined

function listed(text: string, { start, end }: Span): readonly Span[] {
  try {
    return elements(text, start, end, { bounded: true })
  } catch (error) {
    if (error instanceof JsonScanError) return []
    throw error
  }
}
