// JSON that says the same, and in which nothing steers a terminal or hides: inside its strings every character has an escape.

/** A value as JSON in which what JSON leaves as it is, and a terminal obeys, stands as an escape. */
export const visibleJson = (value: unknown, space = 0): string =>
  visibleJsonText(JSON.stringify(value, null, space))

/** The same for JSON as somebody wrote it: numbers and keys stay as they are. */
export const visibleJsonText = (json: string): string =>
  // A carriage return stands between tokens only, where a space means the same.
  json.replaceAll('\r', ' ').replace(/[\x7f-\x9f\p{Cf}\p{Co}\p{Cn}\u2028\u2029]/gu, (character) =>
    Array.from({ length: character.length }, (_, n) => character.charCodeAt(n))
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join(''),
  )
