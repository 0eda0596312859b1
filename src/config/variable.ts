// `${env:NAME}` in a value: replaced by the daemon's variable NAME, an error where that is unset.
import { refusedFamily } from '../lib/environment-families.ts'
import { own } from '../lib/own.ts'

/** A value as it is written, with what happens where a variable that it names is unset. */
export interface VariableText {
  readonly value: string
  readonly default: string | null
  readonly override: string | null
}

export type Resolved =
  | { readonly state: 'value'; readonly value: string }
  | { readonly state: 'unset'; readonly name: string }
  | { readonly state: 'refused'; readonly name: string; readonly family: string }
  | { readonly state: 'malformed'; readonly text: string }

/** Both forms of a value in the file, as one. */
export function variableText(written: string | VariableText): VariableText {
  return typeof written === 'string' ? { value: written, default: null, override: null } : written
}

/**
 * Replaces every `${env:NAME}`; `$${` stands for a plain `${`. A variable of a family that carries secrets or loads code
 * is refused without an override, whatever name it would get: renaming it does not make it harmless.
 */
export function resolveVariable(
  text: VariableText,
  env: Readonly<Record<string, string | undefined>>,
): Resolved {
  let value = ''
  let end = 0
  for (const match of text.value.matchAll(/\$\$\{|\$\{(env:([A-Za-z_][A-Za-z0-9_]*)\})?/g)) {
    const [whole, , name] = match
    value += text.value.slice(end, match.index)
    end = match.index + whole.length
    if (whole === '$${') {
      value += '${'
      continue
    }
    if (name === undefined)
      return { state: 'malformed', text: text.value.slice(match.index, match.index + 40) }
    const family = text.override === null ? refusedFamily(name) : null
    if (family !== null) return { state: 'refused', name, family }
    const found = own(env, name)
    if (found === undefined)
      return text.default === null ? { state: 'unset', name } : { state: 'value', value: text.default }
    value += found
  }
  return { state: 'value', value: value + text.value.slice(end) }
}
