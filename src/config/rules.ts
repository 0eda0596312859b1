// Rules as files state them: each with its place, and none that no call could match, which would deny nothing without a word.
import { basename } from 'node:path'
import { matchesName } from '../lib/glob.ts'
import { nearest } from '../lib/nearest.ts'
import { governedMethods } from '../schema/governed-methods.ts'
import type { Rule } from '../schema/settings.ts'
import type { Config } from '../schema/types.gen.ts'
import type { Document } from './document.ts'
import { issue, type Issue } from './refusal.ts'

/** A file that states rules. */
interface Stating {
  readonly document: Document
  readonly config: Pick<Config, 'rules'>
}

/** The rules of a file, each with the place where people find it. */
export function rulesOf({ document, config }: Stating): readonly Rule[] {
  return config.rules.map((rule, index) => ({
    ...rule,
    origin: `${basename(document.path)} rules[${index}]`,
  }))
}

/** The rules that are about a method which no rule decides. */
export function checkRules({ document, config }: Stating): readonly Issue[] {
  return config.rules.flatMap(({ permission }, index) => {
    const method = permission.split(':').at(-1) ?? ''
    if (!method.includes('/') || governedMethods.some((known) => matchesName(method, known))) return []
    const expected = `mcp:<server>:<tool>, or one of the methods that rules decide: ${governedMethods.join(', ')}`
    const mend = mendOf(method)
    const said = mend === null ? { expected } : { expected, mend }
    return [issue('ERR_CONFIG_INVALID', document, ['rules', index, 'permission'], said)]
  })
}

function mendOf(method: string): string | null {
  if (matchesName(method, 'tools/call')) return 'name the tool, or * for all of them'
  if (matchesName(method, 'subscriptions/listen'))
    return 'write resources/subscribe, or tasks/get, as which each thing in it is decided'
  const meant = nearest(method, governedMethods)
  return meant === null ? null : `did you mean ${meant}?`
}
