// Instructions of a server on their way to the host: what was not accepted is not said to the model behind it.
import { type Member, members, type Span } from '../../lib/json-scan.ts'
import { isConfusable, spellings } from '../../lib/key-folding.ts'
import { parseJson } from '../../lib/parse-json.ts'
import type { HostRequest } from './conversation.ts'
import type { Response } from '../message/envelope.ts'
import { splice } from './listing.ts'
import { utf8 } from '../message/utf8.ts'
import type { Verdict, Wire } from './wire.ts'

const known = spellings(['instructions'])

/** A server that was accepted introduces itself in the words that were. */
export function introduction(
  { method }: HostRequest,
  response: Response,
  result: Member,
  { introduces, note }: Pick<Wire, 'introduces' | 'note'>,
): Verdict {
  const text = withoutInstructions(response.text, response, result, introduces)
  if (text === null) return 'pass'
  note('session/instructions-withheld', { method })
  return { replacement: `${text}\n` }
}

/**
 * The text from `start` to `end` without the instructions in its `result`, or null where they may pass. Those that two
 * readers could take differently pass nowhere, nor does what a reader that copies objects would find them in.
 */
export function withoutInstructions(
  text: string,
  { start, end }: Span,
  result: Member,
  mayPass: (instructions: string) => boolean,
): string | null {
  if (text.charCodeAt(result.start) !== 123) return null
  const found = members(text, result.start, result.end).filter(
    ({ key }) => key === 'instructions' || key === '__proto__' || isConfusable(key, known),
  )
  const said = found.map((member) => utf8(text, member.start, member.end)).filter((json) => json !== 'null')
  if (said.length === 0) return null
  const [only] = said
  if (only !== undefined && found.length === 1 && found[0]?.key === 'instructions') {
    const instructions: unknown = parseJson(only)
    if (typeof instructions === 'string' && mayPass(instructions)) return null
  }
  return splice(
    text,
    start,
    end,
    found.map((member) => ({ start: member.start, end: member.end, text: '""' })),
  )
}
