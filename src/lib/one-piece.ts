// Texts that are part of many others, laid out once for all of them.

/**
 * The same text, laid out in one piece. V8 keeps a text as the pieces that it was put together of, and walks through them each
 * time that a longer text which it is part of is read: for what is part of many, that is worth doing once. So it does a text that was
 * cut out of a longer one, and keeps all of that for as long as the part: for what is kept longer, that is worth a copy. Well-formed
 * texts only.
 */
export const onePiece = (text: string): string => Buffer.from(text).toString()
