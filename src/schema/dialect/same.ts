// One text for all values that JSON Schema takes for the same: the order of members says nothing, and 1.0 is 1.
import { isObject } from './dialects.ts'

/** Two values have one text exactly where they are the same value. */
export function sameText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sameText).join()}]`
  if (typeof value === 'number') return String(value) // also one that is too large for a double: JSON would call it null
  if (!isObject(value)) return JSON.stringify(value)
  const members = Object.keys(value)
    .toSorted()
    .map((name) => `${JSON.stringify(name)}:${sameText(value[name])}`)
  return `{${members.join()}}`
}
