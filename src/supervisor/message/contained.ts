// A bug that shows in the affairs of one party is the end of those, and of nobody else's.
import { SallyportError } from '../../errors.ts'

/**
 * Does what a party's own words or silence lead to. Whatever that throws is a bug of ours, after which nobody knows in what state those
 * affairs are: `broken` is to end them, and is told why. What `broken` throws itself is nobody's to catch.
 */
export function contained(work: () => void, broken: (bug: SallyportError) => void): void {
  try {
    work()
  } catch (thrown) {
    broken(bugIn(thrown))
  }
}

/** What is told of it: a bug quotes whatever it stumbled over, which is for the log alone, and the `cause` of this. */
export function bugIn(thrown: unknown): SallyportError {
  const error = SallyportError.from(thrown)
  if (error.code !== 'ERR_INTERNAL') return error
  return new SallyportError(
    'ERR_INTERNAL',
    'a bug of Sallyport’s own; its log says where',
    {},
    { cause: thrown },
  )
}
