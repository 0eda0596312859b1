// Ids and tokens that tell one request from another, and say nothing else.

/** Whether a JSON literal is a number of at most 16 digits, or a name of at most 40 letters: as long as a UUID, too short for a sentence. */
export const onlyCounts = (literal: string): boolean => /^(?:\d{1,16}|"[\w-]{1,40}")$/.test(literal)
