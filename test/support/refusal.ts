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
