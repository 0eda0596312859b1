// Options that are said more than once: some take every word, and of the others none is dropped unheard.
import type { Command } from 'commander'
import { SallyportError } from '../errors.ts'

/** Keeps every value of an option that may be repeated. */
export const collect = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
]

/** Has a command line refused that says an option twice of which only the last value would count. */
export function expectOnce(command: Command): void {
  for (const inner of command.commands) expectOnce(inner)
  for (const option of command.options) {
    const takesOne = (option.required || option.optional) && !option.variadic
    if (!takesOne || option.parseArg === collect) continue
    let isGiven = false
    command.on(`option:${option.name()}`, () => {
      if (isGiven)
        throw new SallyportError(
          'ERR_USAGE',
          `${option.long ?? option.flags} is given twice, and takes one value; say which`,
        )
      isGiven = true
    })
  }
}
