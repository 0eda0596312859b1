// Names that a person takes for one another, and the one under which the daemon's own search is listed and called.

/** True for `sallyport` in any letter case, also with a 1 or an I for an l, or a 0 for the o; as the schema of names has it. */
export const readsAsOwnName = (name: string): boolean => /^sa[l1i]{2}yp[o0]rt$/i.test(name)

/** What names are alike in that differ as `sallyport` and what is taken for it do. */
export const readName = (name: string): string =>
  name.toLowerCase().replaceAll(/[1i]/g, 'l').replaceAll('0', 'o')
