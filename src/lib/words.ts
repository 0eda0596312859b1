// Long lists of names, written as text so that they can be read.

/** Returns the words of a text, whatever white space is between them. */
export const words = (text: string): string[] => text.trim().split(/\s+/)
