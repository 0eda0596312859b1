// What a function that logs is given; src/log.ts makes the real one.

/** Variables of a log line; their names are fixed: server, instance, call, tool, decision, rule, durationMs, code. */
export type LogFields = Readonly<Record<string, unknown>>

/** Levels: error = the operator must act, warn = degraded or denied, info = lifecycle, debug = per message. */
export interface Logger {
  error(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  debug(fields: LogFields, message: string): void
}

/** Says nothing; for tests, and for `run` where stderr is the server's. */
export const silent: Logger = { error: ignore, warn: ignore, info: ignore, debug: ignore }

function ignore(): void {
  // nothing is logged
}
