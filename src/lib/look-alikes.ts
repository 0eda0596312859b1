// What a text is taken for by readers who normalize it, or drop what nobody sees in it, as U+200B or a soft hyphen.
import { hasLongRun } from './marks.ts'

/** The text without the characters that are not shown by themselves: zero widths, soft hyphens, variation selectors and their like. */
export const shown = (text: string): string => text.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')

/** The text normalized (NFKC), without what is not shown, and both, in either order; null where finding that out would take long. */
export function lookAlikes(text: string): readonly string[] | null {
  if (hasLongRun(text) || hasLongRun(shown(text))) return null
  const [normal, visible] = [text.normalize('NFKC'), shown(text)]
  return visible === text ? [normal] : [normal, visible, visible.normalize('NFKC'), shown(normal)]
}
