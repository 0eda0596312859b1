// Logs on stderr: one JSON object a line, or a line that a person reads where stderr is a terminal.
import { pino } from 'pino'
import { LineWriter } from './lib/line-writer.ts'
import type { Logger } from './lib/logger.ts'
import { parseJson } from './lib/parse-json.ts'

/** How much is said. */
export interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn'
  /** Whether a person watches: time of day, level, message, fields */
  readonly isTerminal: boolean
}

/** Makes the logger of a process. It writes to stderr at once, so that the last words of a crash are not lost, and never throws. */
export function createLogger({ level, isTerminal }: LogOptions): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const write = isTerminal ? asText : asIs
  const lines = new LineWriter(2, (count) => write(lost(count)))
  return pino(options, { write: (line) => lines.write(write(line)) })
}

const lost = (lost: number): string =>
  `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), lost, msg: 'lines of this log could not be written' })}\n`

const asIs = (line: string): string => line

function asText(line: string): string {
  const { time, level, msg, err, ...fields } = parseJson(line) as Record<string, unknown>
  const shown = Object.entries(fields).map(([key, value]) => ` ${key}=${show(value)}`)
  const cause = typeof err === 'object' && err !== null ? `\n  ${String(Reflect.get(err, 'stack'))}` : ''
  return `${String(time).slice(11, 23)} ${String(level).padEnd(5)} ${String(msg)}${shown.join('')}${cause}\n`
}

function show(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return /^[^\s"=]+$/.test(text) && !/[^\x20-\x7e]/.test(text) ? text : JSON.stringify(text)
}
