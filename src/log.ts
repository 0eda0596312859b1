// Logs on stderr: one JSON object a line, or a line that a person reads where stderr is a terminal.
import { pino } from 'pino'
import type { Logger } from './lib/logger.ts'

/** How much is said. */
export interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn'
  /** Whether a person watches: time of day, level, message, fields */
  readonly isTerminal: boolean
}

/** Makes the logger of a process. It writes to stderr at once, so that the last words of a crash are not lost. */
export function createLogger({ level, isTerminal }: LogOptions): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  return isTerminal ? pino(options, terminal) : pino(options, pino.destination({ dest: 2, sync: true }))
}

const terminal = {
  write(line: string): void {
    const { time, level, msg, err, ...fields }: Record<string, unknown> = JSON.parse(line)
    const shown = Object.entries(fields).map(([key, value]) => ` ${key}=${show(value)}`)
    const cause = typeof err === 'object' && err !== null ? `\n  ${String(Reflect.get(err, 'stack'))}` : ''
    process.stderr.write(
      `${String(time).slice(11, 23)} ${String(level).padEnd(5)} ${String(msg)}${shown.join('')}${cause}\n`,
    )
  },
}

function show(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return /^[^\s"=]+$/.test(text) && !/[^\x20-\x7e]/.test(text) ? text : JSON.stringify(text)
}
