// A bug that shows in the affairs of one party is the end of those, and of nobody else's.
import { SallyportError } from '../errors.ts'

/**
 * Does what a party's own words or silence lead to. Whatever that throws is a bug of ours, after which nobody knows in what state those
 * affairs are: `broken` is to end them, and is told why. What `broken` throws itself is nobody's to catch.
 */
export function contained(work: () => void, broken: (bug: SallyportError) => void): void {
  try {
    work()
  } catch (thrown) {
    broken(SallyportError.from(thrown))
  }
}
