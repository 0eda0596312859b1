// A control `tools/call`, from the caller's words to the server's: decide, dispatch, shape.
import { type ErrorCode, SallyportError } from '../../errors.ts'
import type { CallId } from '../../lib/ids.ts'
import { JsonScanError, members } from '../../lib/json-scan.ts'
import { isLong, ownTurn } from '../../lib/long-text.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { RawJson } from '../../lib/raw-json.ts'
import type { CallResult } from '../../rpc/protocol.ts'
import type { Admission, Outcome } from '../../schema/governor.ts'
import type { Line } from './slot-connection.ts'
import { refusalOf } from '../message/governed-request.ts'
import { errorHead, headOf, resultHead, textsOf } from '../message/head.ts'
import { type Answer, errorAnswer } from '../client/answer.ts'
import type { Caller, Ports, ToolCall } from '../ports.ts'
import { comparingOf } from '../client/quiet.ts'
import type { RegisteredServer } from '../registered-server.ts'
import { SecretInResult } from '../message/secret-in-result.ts'
import { kindOfSaid, saidBy } from '../message/tool-result.ts'
import { unavailable } from '../message/unavailable.ts'

interface Parts {
  readonly id: CallId
  readonly call: ToolCall
  readonly caller: Caller
  readonly server: RegisteredServer
  readonly ports: Ports
  readonly signal: AbortSignal
  /** Told as the server gets it */
  readonly sent: () => void
}

/** A call that is not admitted never reaches the server; one that times out or is cancelled is cancelled there too. */
export async function callTool(parts: Parts): Promise<CallResult> {
  const { id, call, caller, server, ports, signal } = parts
  const { settings } = server
  const began = performance.now()
  const timeoutMs = Math.min(call.timeoutMs ?? Infinity, settings.timeouts.callMs)
  const isHeavy = isLong(call.arguments.raw)
  if (isHeavy) await ownTurn()
  const value = parseArguments(call.arguments)
  if (isHeavy) await ownTurn()
  signal.throwIfAborted()
  const tell = (type: string, detail: Readonly<Record<string, unknown>>): void =>
    ports.emit({
      type,
      server: settings.name,
      instance: null,
      principal: caller.principal.id,
      detail: { call: id, tool: call.tool, ...detail },
    })
  const { line, obstacle } = await reach(parts, value, () => tell('call/started', {}))
  using _kept = line
  const asked = `{"name":${JSON.stringify(call.tool)},"arguments":${call.arguments.raw}}`
  const params = line === null ? asked : line.dress(asked)
  const admission = await ports.governor.admit(
    {
      call: id,
      kind: 'tool',
      server: settings,
      instance: line?.instance ?? null,
      subject: call.tool,
      arguments: value,
      bytes: params,
      evidence: params,
      principal: caller.principal.id,
      peer: caller.principal.attributes,
      session: line?.instance ?? '',
      lineage: call.lineage,
      id: null,
      obstacle,
      comparing: comparingOf(settings, () => line?.comparing() ?? null),
      isPart: false,
    },
    // Mostly nobody waits for anything: then no signal is made.
    {
      get signal() {
        return line?.until(signal) ?? signal
      },
      limitMs: timeoutMs,
      asked: () => tell('call/waiting', { for: 'approval' }),
      queued: (isWaiting) => (isWaiting ? tell('call/waiting', { for: 'turn' }) : undefined),
    },
  )
  const sent = performance.now()
  const settle = (kind: Outcome['kind'], bytes: string | null, detail: string | null): boolean =>
    ports.governor.settle(admission, { kind, durationMs: rounded(performance.now() - sent), bytes, detail })
  let answer: Answer
  try {
    if (line === null) throw unavailable(settings.name, null)
    parts.sent()
    answer = await line.send(admission, params, { signal, timeoutMs })
  } catch (thrown) {
    const error = SallyportError.from(thrown)
    const bytes = error instanceof SecretInResult ? error.redacted : null
    // One that never reached its own process is refused, and told of as others are.
    if (settle(endings[error.code] ?? 'lost', bytes, error.message))
      tell('call/failed', { code: error.code, reason: error.message })
    throw error
  }
  if (answer.kind === 'error') settle('error', answer.raw, null)
  else settle(...endOf(answer.said))
  const durationMs = performance.now() - began
  tell('call/ended', { durationMs: Math.round(durationMs), outcome: answer.kind })
  return await resultOf(parts, answer, durationMs, admission)
}

type ErrorAnswer = Extract<Answer, { kind: 'error' }>

const endings: Readonly<Partial<Record<ErrorCode, Outcome['kind']>>> = {
  ERR_CALL_TIMEOUT: 'timeout',
  ERR_CALL_CANCELLED: 'cancelled',
  ERR_SECRET_IN_RESULT: 'error',
  ERR_SERVER_PROTOCOL: 'error',
}

/** The way to the server, or why there is none; for what rules deny anyway no server is started. */
async function reach(
  { call, caller, server, ports, signal }: Parts,
  value: unknown,
  begun: () => void,
): Promise<{ readonly line: Line | null; readonly obstacle: SallyportError | null }> {
  const { settings } = server
  const decision = ports.gate.decide({ server: settings, kind: 'tool', subject: call.tool, arguments: value })
  if (decision.action === 'deny')
    return { line: null, obstacle: refusalOf(decision, settings.name, call.tool) }
  begun() // from here on `calls/cancel` has an id to name
  try {
    server.requireUsable()
    return { line: await server.slot(caller.principal.id).line(call, { signal }), obstacle: null }
  } catch (thrown) {
    return { line: null, obstacle: SallyportError.from(thrown) }
  }
}

/** The arguments as policy reads them; a key that stands twice could be read otherwise by the server. */
export function parseArguments({ raw }: RawJson): unknown {
  const text = Buffer.from(raw, 'utf8').toString('latin1')
  try {
    members(text, 0, text.length, { unique: true })
  } catch (thrown) {
    if (!(thrown instanceof JsonScanError)) throw thrown
    const code = thrown.kind === 'duplicate' ? 'ERR_MESSAGE_AMBIGUOUS' : 'ERR_INVALID_PARAMS'
    throw new SallyportError(code, `arguments: ${thrown.message}, at byte ${thrown.at}`)
  }
  return parseJson(raw)
}

/** What the caller is told: the result or the error as it came, or its beginning, and where the whole is. */
async function resultOf(
  { id, caller, server, ports }: Parts,
  answer: Answer,
  durationMs: number,
  { identity, permit }: Admission,
): Promise<CallResult> {
  const { resultBytes } = server.settings.output
  const metadata = { duration_ms: rounded(durationMs), truncated: false, output_path: null, identity, permit }
  const whole = answer.kind === 'error' ? answer.raw : answer.result.raw
  if (Buffer.byteLength(whole) <= resultBytes) {
    if (answer.kind === 'error')
      return { call_id: id, ...errorOf(answer), data: new RawJson(answer.raw), metadata }
    const text = failureOf(whole)
    return {
      call_id: id,
      type: text === null ? 'output' : 'error',
      data: answer.result,
      error_text: text,
      metadata,
    }
  }
  if (isLong(whole)) await ownTurn()
  const kept = await ports.overflow.redact(whole)
  const path = await ports.overflow.keep(id, caller.principal.id, kept)
  const cut = { ...metadata, truncated: true, output_path: path }
  if (answer.kind === 'error') {
    const said = errorAnswer(kept)
    const data = errorHead(said.code, said.message, resultBytes)
    return { call_id: id, ...errorOf(said, resultBytes), data, metadata: cut }
  }
  if (isLong(kept)) await ownTurn()
  const { data, text } = resultHead(kept, resultBytes)
  const isFailure = failureOf(kept) !== null
  return {
    call_id: id,
    type: isFailure ? 'error' : 'output',
    data,
    error_text: isFailure ? text : null,
    metadata: cut,
  }
}

/** What the server says of its error and the number that it has, in at most `limitBytes`. */
const errorOf = ({ code, message }: ErrorAnswer, limitBytes = Infinity) => {
  const number = ` (${code})`
  const text = headOf(message, limitBytes - number.length) + number
  return { type: 'error', error_text: text } as const
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

/** Of a task that was begun nobody hears any more: how it ends is not known. */
function endOf(raw: string): [kind: Outcome['kind'], bytes: string, detail: string | null] {
  const said = saidBy(raw)
  return said.resultType === 'task' ? ['lost', raw, unfollowed] : [kindOfSaid(said), raw, null]
}

const unfollowed = 'the tool began a task, which a control call cannot follow'

/** The text of a result that says of itself that it failed, or that it wants more than a control call can give. */
function failureOf(raw: string): string | null {
  const { isError, resultType } = saidBy(raw)
  if (resultType === 'input_required') return 'the tool asks for input, which a control call cannot give'
  if (resultType === 'task') return unfollowed
  return isError === true ? textsOf(raw) || 'the tool says that it failed, and not why' : null
}
