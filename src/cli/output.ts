// What people read: tables without clutter, colour only where it is wanted, and nothing that a server could smuggle in.
import { styleText } from 'node:util'
import { unlessAborted } from '../lib/deadline.ts'
import { visibleJson } from '../lib/visible-json.ts'

type Style = Parameters<typeof styleText>[0]

const hasColour = process.stdout.isTTY && process.stdout.hasColors() // knows NO_COLOR and TERM=dumb

/** Colours text on a terminal that shows colours. */
export function paint(style: Style, text: string): string {
  return hasColour ? styleText(style, text, { validateStream: false }) : text
}

/**
 * Makes control, format and escape characters visible: text of a server must not move the cursor, set a title or hide
 * what stands beside it.
 */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
  })
}

/** Lines that others wrote: to a pipe byte for byte, and on a terminal nothing of them may act on it. */
export const visibleLines = (text: string, { isTTY }: { readonly isTTY: boolean }): string =>
  isTTY ? text.split('\n').map(visible).join('\n') : text

/**
 * Breaks a text where the terminal's line ends and goes on indented, after `used` columns of the first line: what others
 * said never stands at the left edge, where our own words begin. Characters beyond ASCII may be two columns wide.
 */
export function hanging(text: string, used: number): string {
  const room = process.stdout.isTTY ? process.stdout.columns : 0
  if (room < 20) return text
  let line = used
  let out = ''
  for (const character of text) {
    const width = columnsOf(character)
    if (line + width > room) {
      out += `\n${indent}`
      line = indent.length
    }
    out += character
    line += width
  }
  return out
}

const indent = '    '

/** One cell; the style applies after padding. */
export interface Cell {
  readonly text: string
  readonly style?: Style
}

/**
 * Prints rows under their headings, columns aligned. On a terminal the last column goes on below itself where a line ends,
 * or where it has no room on lines of its own; `'cut'` keeps every row to one line instead.
 */
export function printTable(
  headings: readonly string[],
  rows: readonly (readonly (string | Cell)[])[],
  last: 'folded' | 'cut' = 'folded',
): void {
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === 'string' ? { text: visible(cell) } : cell)),
  )
  const widths = headings
    .slice(0, -1)
    .map((heading, column) => Math.max(heading.length, ...cells.map((row) => row[column]?.text.length ?? 0)))
  const used = widths.reduce((sum, width) => sum + width + 2, 0)
  const line = (row: readonly Cell[]): string =>
    row
      .map(({ text, style }, column) => {
        const width = widths[column]
        if (width !== undefined) return styled(text.padEnd(width), style)
        return styled(last === 'cut' ? cut(text, used) : folded(text, used), style)
      })
      .join('  ')
      .trimEnd()
  const head = headings.map((text): Cell => ({ text, style: 'dim' }))
  process.stdout.write(`${[head, ...cells].map(line).join('\n')}\n`)
}

/** Prints names and values, one a line; a list goes on under its first line. */
export function printFields(fields: readonly (readonly [string, string | readonly string[]])[]): void {
  const named = fields.map(([name, value]) => [visible(name), value] as const)
  const width = Math.max(...named.map(([name]) => name.length))
  for (const [name, value] of named) {
    const [first = '–', ...rest] = typeof value === 'string' ? [value] : value
    process.stdout.write(`${paint('dim', name.padEnd(width))}  ${visible(first)}\n`)
    for (const more of rest) process.stdout.write(`${' '.repeat(width)}  ${visible(more)}\n`)
  }
}

/** Prints the RPC's own shape. */
export function printJson(value: unknown): void {
  process.stdout.write(jsonText(value))
}

/** The same as a text, which `printJson` prints. */
export const jsonText = (value: unknown): string => `${visibleJson(value, process.stdout.isTTY ? 2 : 0)}\n`

/**
 * Writes one piece of many, and resolves once stdout has taken it: whoever reads slowly holds back who tells, and nothing piles
 * up here. Throws the signal's reason as soon as that aborts.
 */
export const printPiece = (text: string, { signal }: { readonly signal: AbortSignal }): Promise<void> =>
  unlessAborted(written(text), signal)

/** What stdout does not take ends this process, which then has nothing more to say. */
const written = (text: string): Promise<void> =>
  new Promise((resolve) => {
    process.stdout.write(text, (error) => void (error ?? resolve()))
  })

let done: string | null = null

/** Keeps in words what the verb has done, for the case that stdout takes nothing: it is not to be done again. */
export const isDone = (words: string): void => void (done = words)

/** What the verb has done; null while that is nothing. */
export const whatIsDone = (): string | null => done

/** Tells what the verb has done: in words on stderr, or as JSON. */
export function printDone(words: string, result: unknown, json: boolean | undefined): void {
  isDone(words)
  if (json === true) printJson(result)
  else hint(words)
}

/** A word to a person on stderr, beside the results; what is invisible in a line of it is made visible. */
export function hint(text: string): void {
  process.stderr.write(`${text.split('\n').map(visible).join('\n')}\n`)
}

function styled(text: string, style: Style | undefined): string {
  return style === undefined ? text : paint(style, text)
}

function cut(text: string, used: number): string {
  const room = process.stdout.isTTY ? process.stdout.columns - used : Infinity
  return text.length > room && room > 10 ? `${text.slice(0, room - 1)}…` : text
}

/** Breaks a text that begins after `used` columns between its words, and words that are longer than a line. */
function folded(text: string, used: number): string {
  const columns = process.stdout.isTTY ? process.stdout.columns : 0
  if (columns < 20 || used + columnsOf(text) <= columns) return text
  const isBelow = columns - used < 20
  const margin = isBelow ? indent : ' '.repeat(used)
  const room = columns - margin.length
  const words = text.split(/(?<= )/).flatMap((word) => (columnsOf(word) > room ? Array.from(word) : [word]))
  const lines = isBelow ? ['', ''] : ['']
  for (const word of words) {
    const line = lines.at(-1) ?? ''
    if (columnsOf(line + word.trimEnd()) <= room) lines[lines.length - 1] = line + word
    else lines.push(word)
  }
  return lines.map((line) => line.trimEnd()).join(`\n${margin}`)
}

/** Columns that a text may take: characters beyond ASCII may be two wide. */
const columnsOf = (text: string): number =>
  Array.from(text).reduce((sum, character) => sum + (character < '\u0080' ? 1 : 2), 0)
