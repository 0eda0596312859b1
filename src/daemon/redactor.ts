// What is taken out of every record: texts with the shape of a secret.
import type { Logger, LogFields } from '../lib/logger.ts'
import { type Parts, redactJson } from '../credentials/in-json.ts'
import type { Confided } from '../credentials/confided.ts'
import type { Broker } from '../schema/credentials.ts'
import { isJson } from '../lib/is-json.ts'
import { ownTurn, piecesOf } from '../lib/long-text.ts'
import { parseJson } from '../lib/parse-json.ts'
import { redactLongShapes, redactShapes } from '../lib/secret-shape.ts'
import type { Keeper, Redaction, Redactor } from '../schema/redactor.ts'
import type { Settings } from '../schema/settings.ts'
import type { Happening } from '../supervisor/ports.ts'

/** Takes known shapes of secrets out of JSON texts. Values that a credential source gave are for whoever reads the source. */
export const redactor: Keeper = {
  redact: redactShapes,
  redactLong: redactLongShapes,
  shapeIn,
  secretIn: shapeIn,
}

function shapeIn(value: unknown): string | null {
  const { kind } = redactShapes(JSON.stringify(value))
  return kind === null ? null : `what looks like ${kind}`
}

/**
 * The same, and before it every value that calls have or had of late. `names` are the operator's servers: what stands in the
 * name of one is in every record of it, and no secret.
 */
export function redactorWith(broker: Broker, names: () => Iterable<string> = () => []): Keeper {
  const valueIn = (value: unknown): string | null => {
    const found = longValuesIn(JSON.stringify(value), broker)
    if (found.length === 0) return null
    const shown = [...names()].flatMap((name) => broker.redactor.redact(name).found)
    const hidden = found.find((credential) => !shown.includes(credential))
    return hidden === undefined ? null : `the value of the credential ${hidden}`
  }
  return {
    shapeIn,
    secretIn: (value) => valueIn(value) ?? shapeIn(value),
    redact(text) {
      const known = withoutKnown(text, broker)
      const { text: kept, hits } = redactor.redact(known.text)
      return { text: kept, hits: hits + known.hits }
    },
    async redactLong(text) {
      const known = await withoutLongKnown(text, broker)
      const { text: kept, hits } = await redactor.redactLong(known.text)
      return { text: kept, hits: hits + known.hits }
    },
  }
}

/** Shorter ones are words and numbers that stand in many texts, bytes */
const leastBytes = 8

/** The credentials of which a text holds a value that is long enough to be one. */
function longValuesIn(text: string, { redactor: known }: Broker): readonly string[] {
  if (known.redact(text).found.length === 0) return []
  const bytes = Buffer.from(text)
  const mask = known.mask()
  const masked = Buffer.concat([mask.push(bytes), mask.flush()]).toString('latin1')
  return [...masked.matchAll(/\*+/g)].flatMap(({ 0: stars, index }) =>
    stars.length < leastBytes
      ? []
      : known.redact(bytes.subarray(index, index + stars.length).toString()).found,
  )
}

/**
 * A JSON text without the values, and still a JSON text: of `\\n` and `pm_…` in it together a value that begins with an n could be
 * taken out, with half of the escape, and whoever knows one could write that.
 */
function withoutKnown(json: string, broker: Broker): Redaction {
  const { text, found } = broker.redactor.redact(json)
  if (found.length === 0 || isJson(text)) return { text, hits: found.length }
  return redactJson(json, partsWithout(broker))
}

/** The same of a long text, in turns. */
async function withoutLongKnown(json: string, broker: Broker): Promise<Redaction> {
  const { text, found } = await withoutLongValues(json, broker)
  if (found === 0 || isJson(text)) return { text, hits: found }
  const [parts, kept] = [partsWithout(broker), [] as string[]]
  for (const piece of piecesOf(json)) {
    await ownTurn()
    kept.push(redactJson(piece, parts).text)
  }
  return { text: kept.join(''), hits: found }
}

const partsWithout = ({ redactor: known }: Broker): Parts => ({
  text: (said) => known.redact(said).text,
  number: (written) => {
    const kept = known.redact(written)
    return kept.found.length === 0 ? null : kept.text
  },
})

/** What the one leaves, through the other; null leaves all of it. */
export function behind(first: Redactor | null, then: Redactor): Redactor {
  if (first === null) return then
  return {
    redact(text) {
      const known = first.redact(text)
      const kept = then.redact(known.text)
      return { text: kept.text, hits: known.hits + kept.hits }
    },
    async redactLong(text) {
      const known = await first.redactLong(text)
      const kept = await then.redactLong(known.text)
      return { text: kept.text, hits: known.hits + kept.hits }
    },
  }
}

/** Bytes that are looked through in one turn: whoever is governed can make each of them take a microsecond */
const pieceBytes = 32_768

async function withoutLongValues(
  text: string,
  broker: Broker,
): Promise<{ readonly text: string; readonly found: number }> {
  const stream = broker.redactor.stream()
  const bytes = Buffer.from(text)
  const parts: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    await ownTurn()
    parts.push(stream.push(bytes.subarray(at, at + pieceBytes)))
  }
  parts.push(stream.flush())
  const found = stream.found.size
  return { text: found === 0 ? text : Buffer.concat(parts).toString(), found }
}

/** An event without what persons told the server that it is about. */
export function discreet(event: Happening, confided: Pick<Confided, 'of'>): Happening {
  const { server, principal, detail } = event
  const told = server === null || principal === null ? null : confided.of(server, principal)
  if (told === null) return event
  const { text, hits } = told.redact(JSON.stringify(detail))
  return hits === 0 ? event : { ...event, detail: parseJson(text) as Happening['detail'] }
}

/** An event without the values that calls have or had of late; where there are no credentials it is not looked at. */
export function concealed(
  event: Happening,
  broker: Broker,
  { credentials }: Pick<Settings, 'credentials'>,
): Happening {
  return Object.keys(credentials).length === 0 ? event : withoutValues(event, broker)
}

function withoutValues(event: Happening, broker: Broker): Happening {
  const clean = withoutKnown(JSON.stringify(event.detail), broker)
  if (clean.hits === 0) return event
  return { ...event, detail: parseJson(clean.text) as Happening['detail'] }
}

/** A log without them. */
export function concealing(
  log: Logger,
  broker: Broker,
  { credentials }: Pick<Settings, 'credentials'>,
): Logger {
  if (Object.keys(credentials).length === 0) return log
  const clean = (fields: LogFields): LogFields => {
    // An error is no JSON: of what pino makes of it, message and stack are texts.
    const text = JSON.stringify(fields, (_, value: unknown) =>
      value instanceof Error
        ? { message: value.message, stack: value.stack }
        : typeof value === 'bigint'
          ? String(value)
          : value,
    )
    const { text: kept, hits } = withoutKnown(text, broker)
    return hits === 0 ? fields : (parseJson(kept) as LogFields)
  }
  return {
    error: (fields, message) => log.error(clean(fields), message),
    warn: (fields, message) => log.warn(clean(fields), message),
    info: (fields, message) => log.info(clean(fields), message),
    debug: (fields, message) => log.debug(clean(fields), message),
  }
}
