// Answers that a server may not be given, whoever made them up: its settings let it ask for nothing of the kind.
import { type Member, members } from '../../lib/json-scan.ts'
import { foldKey } from '../../lib/key-folding.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Request } from '../message/envelope.ts'
import { serverMay } from './server-may.ts'

/**
 * The names of such answers in a request. What one is is told by itself: `roots` are nobody's but Sallyport's to tell, an `action` is
 * a person's, all else a model's. Answers without names are all of them.
 */
export function unasked(
  server: Pick<ServerSettings, 'trust' | 'elicitation' | 'sampling'>,
  { text, params }: Request,
): readonly string[] {
  const answers = params?.inner.find(({ key }) => key === 'inputResponses')
  if (answers === undefined) return []
  if (text.charCodeAt(answers.start) !== 123) return [answers.key]
  const may = { elicitation: serverMay(server, 'elicitation'), sampling: serverMay(server, 'sampling') }
  return members(text, answers.start, answers.end)
    .filter((answer) => !isAllowed(keysOf(text, answer), may))
    .map(({ key }) => key)
}

function isAllowed(
  keys: ReadonlySet<string>,
  may: { readonly elicitation: boolean; readonly sampling: boolean },
): boolean {
  if (keys.has('roots')) return false
  return keys.has('action') ? may.elicitation : may.sampling
}

const keysOf = (text: string, { start, end }: Member): ReadonlySet<string> =>
  new Set(
    text.charCodeAt(start) === 123 ? members(text, start, end).map(({ key }) => foldKey(key)) : ['action'],
  )
