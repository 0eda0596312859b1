// Whether a text is JSON.
import { parseJson } from './parse-json.ts'

/** True for one JSON value, with white space around it or not. */
export function isJson(text: string): boolean {
  try {
    parseJson(text)
    return true
  } catch {
    return false
  }
}
