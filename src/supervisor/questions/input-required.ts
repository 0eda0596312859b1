// The 2026-07-28 way in which a server asks its host for something: a result that says `input_required`.
import { SallyportError } from '../../errors.ts'
import { decodeString, type Member, members, type Span } from '../../lib/json-scan.ts'
import type { Gate } from '../../schema/gate.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { ascii, declined, rootsOf } from '../message/answers.ts'
import { foldKey, spellings } from '../../lib/key-folding.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { confusableIn, confusableWithin, readUnambiguous, type Request } from '../message/envelope.ts'
import { sensitiveFields } from './sensitive.ts'
import type { Declared } from './declared.ts'
import { queueIsFull, serverMay, whyNotHost } from './server-may.ts'
import { readTwoWays } from './two-ways.ts'
import { utf8 } from '../message/utf8.ts'

/**
 * What to do with a result:
 * - `pass` it asks for nothing, or only for what the server's settings allow; with the names of the questions to a person
 *   that wait for an answer now, and the fields that ask for secrets
 * - `answer` it asks only for what Sallyport answers itself; the request goes out again with these `inputResponses`, and with
 *   the reason for which no person is asked, if one was to be
 * - `refuse` it asks for something that is off and cannot be answered in the host's stead
 */
export type InputVerdict =
  | {
      readonly action: 'pass'
      readonly sensitive: readonly string[]
      readonly names: readonly string[]
      /** A task asks: it is answered with `tasks/update` */
      readonly isTask: boolean
    }
  | {
      readonly action: 'answer'
      readonly responses: string
      readonly state: string | null
      readonly reason: string | null
    }
  | { readonly action: 'refuse'; readonly asked: string; readonly reason: string }

/** How things stand at the host's end. */
export interface HostState {
  /** Questions of the server that wait already, beside those of a task that it asks again by these names */
  readonly waiting: (names: readonly string[]) => number
  /** Read where it is asked for: nearly no result asks */
  readonly declared: () => Declared
}

const asking = spellings(['resultType', 'status', 'inputRequests', 'requestState'])
const question = spellings(['method', 'params'])
const asks = foldKey('inputRequests')
/** Nearly all keys of nearly all results */
const ordinary: ReadonlySet<string> = new Set(['content', 'structuredContent', 'isError', '_meta'])

/** The most that is asked for at once: as many as the longest `elicitation.queue` holds */
const mostAsked = 1024
/** Longest name of one of them, characters: those that were asked are remembered */
const longestName = 1024

const pass: InputVerdict = { action: 'pass', sensitive: [], names: [], isTask: false }

const neverAsked = 'no server may ask for it'
const twoWays = 'a host could read another question in it than was judged'
const refuse = (asked: string, reason: string): InputVerdict => ({ action: 'refuse', asked, reason })

/** Judges a result. One whose parts stand twice is refused: the host could read another one than was judged. */
export function judgeInput(
  text: string,
  result: Member,
  server: ServerSettings,
  gate: Gate,
  { waiting, declared }: HostState,
): InputVerdict {
  const found = result.inner
  // A reader that copies objects, or takes one spelling for another, would ask, and nobody judged what.
  if (found.some(({ key }) => key === '__proto__')) return refuse('something by a prototype', twoWays)
  if (found.some(({ key }) => foldKey(key) === asks) && confusableIn(found, asking) !== null)
    return refuse('something in two spellings', twoWays)
  const type = lookUp(found, 'resultType')
  if (type === 'twice') return refuse('two things at once', twoWays)
  const status = lookUp(found, 'status')
  if (status === 'twice') return refuse('two things at once', twoWays)
  const isResult = type !== null && textOf(text, type) === 'input_required'
  // A task asks by its status, and is answered with `tasks/update`, not by a retry.
  const isTask = status !== null && textOf(text, status) === 'input_required'
  const requests = lookUp(found, 'inputRequests')
  if (!isResult && !isTask && requests === null) return pass
  const state = lookUp(found, 'requestState')
  if (requests === 'twice' || state === 'twice') return refuse('two things at once', twoWays)
  if (requests === null || text.slice(requests.start, requests.end) === 'null') return pass
  // A host that goes by the questions alone, or through any list of them, would ask, and nobody judged what.
  if (text.charCodeAt(requests.start) !== 123 || (!isResult && !isTask))
    return refuse(
      'something that is no question',
      'its inputRequests are no object, or come by no input_required',
    )

  const entries = members(text, requests.start, requests.end)
  if (entries.length > mostAsked)
    return refuse(`more than ${mostAsked} things at once`, 'no queue holds as many')
  if (entries.some(({ key }) => key.length > longestName))
    return refuse(`something under a name of more than ${longestName} characters`, 'no name is as long')
  let known: Declared | null = null
  const host = (): Declared => (known ??= declared())
  const answers: string[] = []
  const sensitive: string[] = []
  let passing = 0
  let reason: string | null = null
  const asked = entries.map((entry) => {
    const method = methodOf(text, entry)
    return { entry, method, route: gate.route('server', 'request', method) }
  })
  if (asked.some(({ method }) => method === '')) return refuse('what could be read in two ways', twoWays)
  const questions = asked.filter(({ route }) => route === 'elicitation').map(({ entry }) => entry.key)
  // A task that asks for more and more has no larger queue than who asks for all of it at once.
  const fits = questions.length === 0 || questions.length + waiting(questions) <= server.elicitation.queue
  for (const { entry, method, route } of asked) {
    if (route === 'roots') answers.push(`${ascii(entry.key)}:${ascii(rootsOf(server))}`)
    else if (route === 'elicitation') {
      const params = serverMay(server, route) ? paramsOf(text, entry) : null
      const why =
        whyNotHost(server, host, route, params) ??
        (fits ? null : queueIsFull(server)) ??
        readTwoWays(text, paramsAt(text, entry))
      if (why === null) {
        passing++
        sensitive.push(...sensitiveFields(params))
      } else {
        reason ??= why
        answers.push(`${ascii(entry.key)}:${ascii(declined)}`)
      }
    } else {
      // A result that asks for anything else, which a request may, asks in a way that nobody has.
      const why = route === 'sampling' ? whyNotHost(server, host, route, null) : neverAsked
      if (why !== null) return refuse(method, why)
      passing++
    }
  }
  if (answers.length === 0) return { action: 'pass', sensitive, names: questions, isTask: !isResult }
  if (!isResult) return refuse('input by a task', reason ?? 'no task is told the roots')
  if (passing > 0)
    return reason === null
      ? refuse('roots together with what a host answers', 'roots are told alone')
      : refuse('inputs of which only some are enabled', reason)
  return {
    action: 'answer',
    responses: `{${answers.join(',')}}`,
    state: state === null ? null : text.slice(state.start, state.end),
    reason,
  }
}

/** True for a result that asks for anything, under whatever spelling: for those that may not ask. */
export const doesAsk = (text: string, { inner }: Member): boolean =>
  inner.some(
    ({ key, start, end }) => !ordinary.has(key) && foldKey(key) === asks && text.slice(start, end) !== 'null',
  )

/** The request again, under another id, with its inputs. Everything else of its parameters stands as it was. */
export function retryLine(
  line: string,
  id: string,
  method: string,
  responses: string,
  state: string | null,
): string {
  const kept = paramsIn(line)
    .filter(({ key }) => key !== 'inputResponses' && key !== 'requestState')
    .map(({ key, start, end }) => `${ascii(key)}:${line.slice(start, end)}`)
  const all = [
    ...kept,
    `"inputResponses":${responses}`,
    ...(state === null ? [] : [`"requestState":${state}`]),
  ]
  return `{"jsonrpc":"2.0","id":${id},"method":${ascii(method)},"params":{${all.join(',')}}}\n`
}

/** The members of a request's params. */
export function paramsIn(line: string): readonly Member[] {
  const params = members(line, 0, line.length).find(({ key }) => key === 'params')
  return params === undefined ? [] : members(line, params.start, params.end)
}

/** The request with a no in the place of each of these answers, and with none where they are no object; the rest of it stands as it was. */
export function declining({ text, start, end }: Request, names: readonly string[]): Request {
  const line = text.slice(start, end)
  const responses = paramsIn(line).find(({ key }) => key === 'inputResponses')
  if (responses === undefined) return readRequest(line)
  const isObject = line.charCodeAt(responses.start) === 123
  const answers = (isObject ? members(line, responses.start, responses.end) : []).map(
    ({ key, start: from, end: to }) =>
      `${ascii(key)}:${names.includes(key) ? ascii(declined) : line.slice(from, to)}`,
  )
  return readRequest(`${line.slice(0, responses.start)}{${answers.join(',')}}${line.slice(responses.end)}`)
}

function readRequest(line: string): Request {
  const envelope = readUnambiguous(line, 0, line.length)
  if (envelope.kind === 'request') return envelope
  throw new SallyportError('ERR_INTERNAL', 'an answer that came too late is no request any more')
}

/** Empty for what is no question, or could be read as another one. */
function methodOf(text: string, entry: Member): string {
  if (text.charCodeAt(entry.start) !== 123) return ''
  const found = members(text, entry.start, entry.end)
  const method = lookUp(found, 'method')
  if (method === null || method === 'twice' || lookUp(found, 'params') === 'twice') return ''
  return confusableWithin(found, question) === null ? textOf(text, method) : ''
}

const paramsAt = (text: string, { start, end }: Span): Span | null =>
  members(text, start, end).find(({ key }) => key === 'params') ?? null

function paramsOf(text: string, entry: Span): unknown {
  return Reflect.get(Object(parseJson(utf8(text, entry.start, entry.end))), 'params')
}

function lookUp(found: readonly Member[], key: string): Member | null | 'twice' {
  const same = found.filter((member) => member.key === key)
  return same.length > 1 ? 'twice' : (same[0] ?? null)
}

const textOf = (text: string, { start, end }: Span): string =>
  text.charCodeAt(start) === 34 ? decodeString(text.slice(start, end)) : ''
