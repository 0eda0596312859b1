// What was worked out before: code that runs seldom is slow each time, and the same few names come again and again.

/** Longest text that is remembered: a name of the longest kind, or an address. */
const maxText = 253

/**
 * Returns `work`, a function of nothing but its text, such that it does not run again for the text of the time before: what it
 * gave then is the very same text, which is compared at a glance and hashed once.
 */
export function rememberedOnce(work: (text: string) => string): (text: string) => string {
  let last: string | null = null
  let result = ''
  return (text) => {
    if (text === last) return result
    if (text.length > maxText) return work(text)
    last = Buffer.from(text).toString() // a slice would hold all of the text that it was cut from
    result = work(last)
    return result
  }
}

/** Returns `work`, a function of nothing but its text, such that it runs once for each of the last `most` texts or so. */
export function remembered<T>(work: (text: string) => T, most: number): (text: string) => T {
  const known = new Map<string, { readonly result: T }>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined) return before.result
    const result = work(text)
    if (text.length > maxText) return result
    if (known.size >= most) known.clear()
    known.set(text, { result })
    return result
  }
}

/** Returns `work`, a function of nothing but what an object holds, which does not change, such that it runs once for each object. */
export function rememberedOf<K extends object, T>(work: (of: K) => T): (of: K) => T {
  const known = new WeakMap<K, { readonly result: T }>()
  return (of) => {
    const before = known.get(of)
    if (before !== undefined) return before.result
    const result = work(of)
    known.set(of, { result })
    return result
  }
}
