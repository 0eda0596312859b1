// Prints the demo's tables: aligned columns, one verdict for each row, colour where a person looks.
import { stripVTControlCharacters } from 'node:util'

const isColoured = process.stdout.isTTY && process.env['NO_COLOR'] === undefined
const paint = (code: number) => (text: string) => (isColoured ? `\u001B[${code}m${text}\u001B[0m` : text)

export const bold = paint(1)
export const dim = paint(2)
export const red = paint(31)
export const green = paint(32)

/** A line of a table: its cells, and whether it is as promised. */
export interface Row {
  readonly cells: readonly string[]
  readonly isAsPromised: boolean
}

export interface Table {
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly Row[]
}

/** Prints a table and returns how many of its rows are not as promised. */
export function printTable({ title, head, rows }: Table): number {
  const all = [head, ...rows.map(({ cells }) => cells)]
  const widths = head.map((_, column) => Math.max(...all.map((cells) => width(cells[column] ?? ''))))
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - width(cell))).join('  ')
  console.log(`\n${bold(title)}\n`)
  console.log(`    ${dim(line(head))}`)
  for (const { cells, isAsPromised } of rows)
    console.log(`  ${isAsPromised ? green('✓') : red('✗')} ${line(cells).trimEnd()}`)
  return rows.filter(({ isAsPromised }) => !isAsPromised).length
}

/** Cuts text to one line of at most `limit` columns. */
export function short(text: string, limit: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line
}

function width(text: string): number {
  return stripVTControlCharacters(text).length
}
