// Whether an object has a key twice.

/** Keys of one object; most have few, for which a list is quicker than a set. */
export class KeySet {
  readonly #few: string[] = []
  #many: Set<string> | null = null

  constructor(members: readonly { readonly key: string }[] | null) {
    for (const { key } of members ?? []) this.add(key)
  }

  /** False when it was there already. */
  add(key: string): boolean {
    if (this.#many !== null) {
      const before = this.#many.size
      return this.#many.add(key).size > before
    }
    if (this.#few.includes(key)) return false
    this.#few.push(key)
    if (this.#few.length > 12) this.#many = new Set(this.#few)
    return true
  }
}
