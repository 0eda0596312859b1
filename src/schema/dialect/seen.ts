// Which members and items of one value a schema has looked at: what it has not is for `unevaluatedProperties` and `unevaluatedItems`.

/** Grows as schemas that fit look at the value. */
export class Seen {
  readonly names = new Set<string>()
  readonly places = new Set<number>()

  /** Takes over what a schema that judged the same value, and that fits, has looked at. */
  take({ names, places }: Seen): void {
    for (const name of names) this.names.add(name)
    for (const place of places) this.places.add(place)
  }
}
