// What is fuzzed: a parser, and what must hold of whatever it makes of any bytes.
import { setImmediate } from 'node:timers/promises'

/** One parser. */
export interface Target {
  readonly name: string
  /** Inputs to begin with beside the corpus */
  readonly seeds: readonly (string | Uint8Array)[]
  /** Pieces of the language that chance would hardly spell */
  readonly words: readonly string[]
  /** Throws where something does not hold: that is a finding */
  run(bytes: Buffer): void | Promise<void>
}

/** A string with no letter beyond \xff is bytes as they are written; any other is UTF-8. */
export const bytesOf = (text: string | Uint8Array): Buffer =>
  typeof text === 'string'
    ? Buffer.from(text, /^[\0-\xff]*$/.test(text) ? 'latin1' : 'utf8')
    : Buffer.from(text)

/** A property that does not hold. */
export class Finding extends Error {
  override readonly name = 'Finding'
}

/** Longest that one input may take, ms: what takes longer can be made to hang. */
const mostMs = 2000

/**
 * Runs one input; whatever it throws is the finding, and so is what nobody catches meanwhile, which would end a daemon, taking too
 * long, and never being done.
 */
export async function tryInput(target: Target, bytes: Buffer): Promise<unknown> {
  const started = performance.now()
  const uncaught: unknown[] = []
  const note = (error: unknown): void => void uncaught.push(error)
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, note)
  try {
    const waiting = target.run(bytes)
    if (waiting !== undefined) {
      await inTime(waiting)
      await setImmediate() // by then it is known that nobody catches it
    }
    if (uncaught.length > 0) return new Finding('an error that nobody catches', { cause: uncaught[0] })
  } catch (error) {
    return error
  } finally {
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.off(event, note)
  }
  const ms = performance.now() - started
  return ms > mostMs ? new Finding(`one input took ${Math.round(ms)} ms`) : null
}

async function inTime(waiting: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>()
  const tooLong = new Finding(`one input was not done in ${mostMs} ms`)
  const timer = setTimeout(() => late.reject(tooLong), mostMs)
  try {
    await Promise.race([waiting, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
