// The name under which the daemon's own search is listed and called, and what a person takes for it.

/** True for `sallyport` in any letter case, also with a 1 or an I for an l, or a 0 for the o; as the schema of names has it. */
export const readsAsOwnName = (name: string): boolean => /^sa[l1i]{2}yp[o0]rt$/i.test(name)
