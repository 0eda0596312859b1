// JSON that has one reading: nothing said twice, and every number as it is written, whatever a double makes of it.
import { randomBytes } from 'node:crypto'
import { behindLiteral } from './long-text.ts'
import { elements, JsonScanError, members, type Span } from './json-scan.ts'
import { parseJson } from './parse-json.ts'

/** A number that a double does not hold; written out again as JSON it is the double beside it. */
export class WrittenNumber {
  readonly written: string
  readonly read: number

  constructor(written: string, read: number) {
    this.written = written
    this.read = read
  }

  toJSON(): number {
    return this.read
  }
}

/** What 15 digits say, a double holds: true for a longer run of digits and points, and where an exponent follows on a digit. */
export function mayBeInexact(json: string): boolean {
  let run = 0
  for (let at = 0; at < json.length; at++) {
    const char = json.charCodeAt(at)
    const isDigit = char >= zero && char <= zero + 9
    if (isDigit || char === point) {
      run += 1
      if (run === longestExact + 1) return true
    } else {
      if (run > 0 && (char | lowerCase) === exponent && json.charCodeAt(at - 1) !== point) return true
      run = 0
    }
  }
  return false
}

const zero = 48
const point = 46
const exponent = 101
const lowerCase = 32
const longestExact = 15

/** A number that a double does not hold, and where it stands. */
export interface InexactAt extends Span {
  readonly written: string
  readonly read: number
}

/** The numbers of a JSON text that a double does not hold, in their order. */
export function* inexactIn(json: string): Generator<InexactAt, undefined> {
  let isLong = false
  for (let at = 0; at < json.length;) {
    const char = json.charCodeAt(at)
    if (char === quote) at = behindLiteral(json, at)
    else if (!isDigit(char) && char !== minus) at += 1
    else {
      const start = at
      isLong = false
      for (let next = char; isOfNumber(next); next = json.charCodeAt(++at))
        isLong ||= (next | lowerCase) === exponent || at - start >= longestExact
      if (isLong) yield* inexactBetween(json, start, at)
    }
  }
}

function* inexactBetween(json: string, start: number, end: number): Generator<InexactAt, undefined> {
  const written = json.slice(start, end)
  const read = Number(written)
  if (!isHeld(written, read)) yield { start, end, written, read }
}

/** Whether a double holds what is written; where neither has an exponent, they differ in zeros at the end at most. */
function isHeld(written: string, read: number): boolean {
  const said = String(read)
  if (written === said) return true
  if (read === 0 || /e/i.test(written) || said.includes('e')) return decimal(written) === decimal(said)
  if (!written.includes('.')) return false
  let end = written.length
  while (written.charCodeAt(end - 1) === zero) end -= 1
  if (written.charCodeAt(end - 1) === point) end -= 1
  return written.slice(0, end) === said
}

const quote = 34
const plus = 43
const minus = 45
const isDigit = (char: number): boolean => char >= zero && char <= zero + 9
const isOfNumber = (char: number): boolean =>
  isDigit(char) || char === point || char === minus || char === plus || (char | lowerCase) === exponent

/** Stands for a number until it is put there; nobody can write what nobody was told. */
const mark = randomBytes(16).toString('hex')

/** The value, with a `WrittenNumber` in the place of each number that a double does not hold. */
export function parseWritten(json: string): unknown {
  const found = mayBeInexact(json) ? [...inexactIn(json)] : []
  if (found.length === 0) return parseJson(json)
  const ends = [0, ...found.map(({ end }) => end)]
  const between = [...found, { start: json.length }].map(({ start }, n) => json.slice(ends[n], start))
  const marked = between.map((text, n) => (n < found.length ? `${text}"${mark}${n}"` : text)).join('')
  return unmarked(parseJson(marked), found)
}

function unmarked(value: unknown, found: readonly InexactAt[]): unknown {
  if (typeof value === 'string') {
    const number = value.startsWith(mark) ? found[Number(value.slice(mark.length))] : undefined
    return number === undefined ? value : new WrittenNumber(number.written, number.read)
  }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((inner) => unmarked(inner, found))
  for (const [key, inner] of Object.entries(value) as [string, unknown][]) {
    const put = unmarked(inner, found)
    if (put !== inner) Object.defineProperty(value, key, { value: put })
  }
  return value
}

/** The value with a double for each number. */
export const rounded = (value: unknown): unknown => parseJson(JSON.stringify(value))

/** As `parseWritten`; throws JsonScanError for a text in which an object says something twice, which readers take differently. */
export function readOneWay(json: string): unknown {
  const text = `[${latin1(json)}]` // as one element, since the value need not be an object
  elements(text, 0, text.length, { unique: true })
  return parseWritten(json)
}

/** As `readOneWay`; null in place of an error. */
export const parseOneWay = (json: string): unknown => scanned(() => readOneWay(json))

/** The texts of the elements of a list that is a member of an object; null where there is no such list, or more than one. */
export function listIn(json: string, key: string): readonly string[] | null {
  const text = latin1(json)
  const found = scanned(() => members(text, 0, text.length)) ?? []
  const [list, ...more] = found.filter((member) => member.key === key)
  if (list === undefined || more.length > 0 || text[list.start] !== '[') return null
  return elements(text, list.start, list.end).map(({ start, end }) => unicode(text.slice(start, end)))
}

function scanned<T>(scan: () => T): T | null {
  try {
    return scan()
  } catch (error) {
    if (error instanceof JsonScanError) return null
    throw error
  }
}

/** One spelling for each number: its digits without zeros around them, and the power of ten of the last. */
export function decimal(number: string): string {
  const { sign, digits, power } = parts(number)
  return digits === '' ? '0' : `${sign}${digits}e${power}`
}

/** A number's digits without zeros around them, its sign, and the power of ten of the last digit. */
export function parts(number: string): {
  readonly sign: string
  readonly digits: string
  readonly power: number
} {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  return { sign, digits: digits.slice(0, end), power: Number(power) - fraction.length + digits.length - end }
}

/** The reading that `json-scan` takes: a character for each byte. */
export const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** What was written, of such a reading. */
export const unicode = (text: string): string => Buffer.from(text, 'latin1').toString('utf8')

/** The texts of all that an object says under a key: of one that says it twice, more than one. */
export function allIn(json: string, key: string): readonly string[] {
  const text = latin1(json)
  const found = scanned(() => members(text, 0, text.length)) ?? []
  return found.filter((member) => member.key === key).map(({ start, end }) => unicode(text.slice(start, end)))
}
