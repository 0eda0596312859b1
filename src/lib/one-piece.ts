// Texts that are part of many others, laid out once for all of them.

/**
 * The same text, laid out in one piece. V8 keeps a text as the pieces that it was put together of, and walks through them each
 * time that a longer text which it is part of is read: for what is part of many, that is worth doing once. Well-formed texts only.
 */
export const onePiece = (text: string): string => Buffer.from(text).toString()
