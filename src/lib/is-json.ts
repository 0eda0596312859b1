// Whether a text is JSON.

/** True for one JSON value, with white space around it or not. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
