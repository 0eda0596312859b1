// A map for entries that come and go thousands of times a second, as requests in flight do.
//
// V8's own Map and Set grow a new table every few dozen deletions, and the old table keeps a link to the new one. Once
// one of them has become old, every later table, with all that it ever held, outlives each young collection until a
// full one: of 64 governed calls in flight, those collections took an eighth of the daemon's time. Here an entry that
// is deleted is linked to by nothing.

interface Entry<V> {
  readonly key: string
  value: V
  next: Entry<V> | null
}

/** How many characters of a key its bucket depends on: each costs as much as all else of a look */
interface Looked {
  readonly first: number
  readonly last: number
}

/** Keys that somebody else chose */
const anybodys: Looked = { first: 24, last: 24 }
/** Ids of ours, which end in what tells one from another: a counter, or letters that chance gave */
export const oursAlone: Looked = { first: 0, last: 6 }

/** What `Map` does, in no particular order. Made for at most some thousands of entries at a time. */
export class BriefMap<V> {
  #buckets: (Entry<V> | null)[] = emptyBuckets(64)
  #size = 0
  readonly #first: number
  readonly #last: number

  constructor({ first, last } = anybodys) {
    this.#first = first
    this.#last = last
  }

  get size(): number {
    return this.#size
  }

  has(key: string): boolean {
    return this.#find(key) !== null
  }

  get(key: string): V | undefined {
    return this.#find(key)?.value
  }

  set(key: string, value: V): void {
    if (this.#size >= this.#buckets.length) this.#grow()
    const bucket = this.#bucketOf(key)
    const first = this.#buckets[bucket] ?? null
    for (let entry = first; entry !== null; entry = entry.next) {
      if (entry.key !== key) continue
      entry.value = value
      return
    }
    this.#buckets[bucket] = { key, value, next: first }
    this.#size += 1
  }

  /** False when it was not there. */
  delete(key: string): boolean {
    return this.#remove(key) !== null
  }

  /** What was there, which is not from now on. */
  take(key: string): V | undefined {
    return this.#remove(key)?.value
  }

  #remove(key: string): Entry<V> | null {
    const bucket = this.#bucketOf(key)
    let before: Entry<V> | null = null
    for (let entry = this.#buckets[bucket] ?? null; entry !== null; entry = entry.next) {
      if (entry.key === key) {
        if (before === null) this.#buckets[bucket] = entry.next
        else before.next = entry.next
        entry.next = null
        this.#size -= 1
        return entry
      }
      before = entry
    }
    return null
  }

  clear(): void {
    this.#buckets = emptyBuckets(64)
    this.#size = 0
  }

  /** The keys that are there now. */
  keys(): readonly string[] {
    return this.#entries().map(({ key }) => key)
  }

  /** The values that are there now. */
  values(): readonly V[] {
    return this.#entries().map(({ value }) => value)
  }

  #find(key: string): Entry<V> | null {
    if (this.#size === 0) return null
    let entry = this.#buckets[this.#bucketOf(key)] ?? null
    while (entry !== null && entry.key !== key) entry = entry.next
    return entry
  }

  #grow(): void {
    const entries = this.#entries()
    this.#buckets = emptyBuckets(this.#buckets.length * 4)
    for (const entry of entries) {
      const bucket = this.#bucketOf(entry.key)
      entry.next = this.#buckets[bucket] ?? null
      this.#buckets[bucket] = entry
    }
  }

  #entries(): readonly Entry<V>[] {
    const found: Entry<V>[] = []
    for (const first of this.#buckets)
      for (let entry = first; entry !== null; entry = entry.next) found.push(entry)
    return found
  }

  /** FNV-1a over both ends of the key; the number of buckets is a power of two. */
  #bucketOf(key: string): number {
    let hash = 0x811c9dc5 ^ key.length
    const middle = Math.min(this.#first, key.length)
    for (let at = 0; at < middle; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
    for (let at = Math.max(middle, key.length - this.#last); at < key.length; at++)
      hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
    return (hash ^ (hash >>> 15)) & (this.#buckets.length - 1)
  }
}

const emptyBuckets = <V>(length: number): (Entry<V> | null)[] => Array.from({ length }, () => null)
