// Whether what a tool answered is what its accepted declaration says it answers: what is not speaks for nobody.
import type { AcceptedTool } from '../../call/declaration.ts'
import type { Ledger } from '../../call/ledger.ts'
import { type Check, judgePlainly, plainCheck, TooLong } from '../../call/plain-schema.ts'
import type { Ended } from '../../call/ports.ts'
import { SallyportError } from '../../errors.ts'
import { parseJson } from '../../lib/parse-json.ts'
import type { Admission, Outcome } from '../../schema/governor.ts'

/** A longer result is not judged: its tool may answer so all day, and each takes the time of all, characters */
const longest = 262_144

const checks = new WeakMap<AcceptedTool, Check | null>()

/** What the outcome of a call says beside what it was, where its result is not what was declared. */
export function unlikeDeclared(
  ledger: Pick<Ledger, 'accepted'>,
  { server, kind, subject }: Pick<Admission, 'server' | 'kind' | 'subject'>,
  { kind: end, bytes }: Outcome,
): Pick<Ended, 'offSchema'> | null {
  if (end !== 'result' || kind !== 'tool') return null
  const why = offSchema(ledger.accepted(server)?.tools.get(subject), bytes)
  return why === null ? null : { offSchema: why }
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
    return judgePlainly(check, structuredContent, 'structuredContent')
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
