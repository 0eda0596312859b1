// Whether what a tool answered is what its accepted declaration says it answers: what is not speaks for nobody.
import type { AcceptedTool } from '../../call/declaration.ts'
import type { Ledger } from '../../call/ledger.ts'
import { type Check, judgePlainly, plainCheck, TooLong } from '../../call/plain-schema.ts'
import type { Ended } from '../../call/ports.ts'
import { SallyportError } from '../../errors.ts'
import { beginning } from '../../lib/clip.ts'
import { parseJson } from '../../lib/parse-json.ts'
import type { Admission, Outcome } from '../../schema/governor.ts'

/** A longer result is not judged: its tool may answer so all day, and each takes the time of all, characters */
const longest = 262_144
/** Steps of judging one: the server chooses both schema and result */
const mostSteps = 20_000
/** Longest word about it, characters */
const longestWord = 300

const checks = new WeakMap<AcceptedTool, Check | null>()

/** What the outcome of a call says beside what it was, where its result is not what was declared. */
export function unlikeDeclared(
  ledger: Pick<Ledger, 'accepted'>,
  { server, kind, subject, identity }: Pick<Admission, 'server' | 'kind' | 'subject' | 'identity'>,
  { kind: end, bytes, isState }: Outcome,
): Pick<Ended, 'offSchema'> | null {
  if (end !== 'result' || kind !== 'tool' || isState === true) return null
  const accepted = ledger.accepted(server)
  if (accepted === null || !identity.endsWith(`#${accepted.declarationVersion}`)) return null // accepted anew meanwhile
  const why = offSchema(accepted.tools.get(subject), bytes)
  return why === null ? null : { offSchema: beginning(why, longestWord) }
}

/**
 * Null, or where and why the structured content of a result, a JSON text, is not what the accepted output schema says. Judged
 * are schemas of plain words alone (as for arguments, what is more than those takes a thread), and results that are not long.
 */
function offSchema(tool: AcceptedTool | undefined, result: string | null): string | null {
  const output = tool?.declaration.output ?? null
  if (tool === undefined || output === null || result === null || result.length > longest) return null
  const check = checkOf(tool, output)
  if (check === null) return null
  try {
    const { structuredContent } = { ...(parseJson(result) as { readonly structuredContent?: unknown }) }
    if (structuredContent === undefined) return 'it has no structuredContent, which its output schema is of'
    return judgePlainly(check, structuredContent, 'structuredContent', mostSteps)
  } catch (error) {
    return error instanceof TooLong ? null : `it can't be read: ${SallyportError.from(error).message}`
  }
}

function checkOf(tool: AcceptedTool, output: unknown): Check | null {
  const known = checks.get(tool)
  if (known !== undefined) return known
  const check = plainCheck(output)
  checks.set(tool, check)
  return check
}
