// A schema that can't be judged by: where it fails, what stands there, and what could.
import { beginning } from '../../lib/clip.ts'

/** Says why nobody can judge by a schema. Its message is for whoever has to mend it, and short whatever the schema holds. */
export class Unusable extends Error {
  override readonly name = 'Unusable'

  /** `place` is a pointer into the schema, `found` what stands there, `expected` what may. */
  constructor(place: string, found: unknown, expected: string) {
    super(`${beginning(place, 200)}: got ${short(found)}, expected ${expected}`)
  }
}

/** A value as JSON, at most 80 characters of it. */
export function short(value: unknown): string {
  return beginning(JSON.stringify(value) ?? 'nothing', 80)
}
