// What a refusal says: its code and its one line.
import { expect } from 'vitest'
import { type ErrorCode, SallyportError } from '../../src/errors.ts'

/** Expects the act to be refused with that code, in one line that holds every one of the words. */
export const expectRefusal = async (
  act: () => unknown,
  code: ErrorCode,
  ...words: readonly string[]
): Promise<void> => {
  const thrown = await Promise.resolve()
    .then(act)
    .then(
      () => 'nothing was refused',
      (error: unknown) => error,
    )
  if (!(thrown instanceof SallyportError))
    throw new Error(`expected ${code}, got ${String(thrown)}`, { cause: thrown })
  expect({ code: thrown.code, message: thrown.message }).toMatchObject({ code })
  expect(thrown.message).not.toMatch(/[\n\0]/)
  for (const word of words) expect(thrown.message).toContain(word)
}

/** The error that an act is refused with; a test fails where it is not refused, or refused with anything else. */
export async function refusal(act: () => unknown): Promise<SallyportError> {
  try {
    await act()
  } catch (error) {
    if (error instanceof SallyportError) return error
    throw error
  }
  throw new Error('expected a refusal, and there was none')
}

/** Code and every line, as a person would see them. */
export function linesOf(error: SallyportError): string {
  const { problems } = error.details
  return [error.code, ...(Array.isArray(problems) ? problems.map(String) : [error.message])].join('\n')
}
