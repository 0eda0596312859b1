// What the entry of a registration says, all of it: nothing that an operator registers is left to a default.
import { SallyportError } from '../../errors.ts'

/** What a registration must say in so many words; the name is the seventh. */
const stated = ['command', 'version', 'trust', 'justification', 'tags'] as const

/** Throws ERR_INVALID_PARAMS with all that it does not say. */
export function expectStated(server: string, entry: Readonly<Record<string, unknown>>): void {
  const missing = stated.filter((key) => entry[key] === undefined || entry[key] === '')
  const isDeclared = entry['declaration'] !== undefined || entry['acceptance'] !== undefined
  if (missing.length === 0 && isDeclared) return
  const what = [...missing, ...(isDeclared ? [] : ['declaration or acceptance'])].join(', ')
  throw new SallyportError(
    'ERR_INVALID_PARAMS',
    `servers/add: the entry of ${server} does not say ${what}; a registration states them all`,
    { server },
  )
}
