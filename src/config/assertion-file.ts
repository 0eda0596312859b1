// A file of assertions for `sallyport verify --tests`: read, validated, and given to the profiles that each names.
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { SallyportError } from '../errors.ts'
import { matchesName } from '../lib/glob.ts'
import { errnoOf } from '../lib/missing.ts'
import type { StatedAssertion } from '../schema/assertion.ts'
import { validate } from '../schema/validate.ts'
import { checkAssertions, statedIn } from './assertions.ts'
import { parseDocument } from './document.ts'
import { issue, refuse, type Issue } from './refusal.ts'

/**
 * Returns what the file states for each of the profiles. ERR_CONFIG_NOT_FOUND where it cannot be read,
 * ERR_CONFIG_INVALID where a line is none, or is for none of the profiles: what is stated and not tried would pass.
 */
export async function readAssertions(
  file: string,
  profiles: readonly string[],
): Promise<ReadonlyMap<string, readonly StatedAssertion[]>> {
  const path = resolve(file)
  const document = parseDocument(path, await textOf(path))
  const validated = validate('assertions', document.value)
  if (!validated.ok) {
    refuse(validated.problems.map((problem): Issue => ({ code: 'ERR_CONFIG_INVALID', document, problem })))
    throw new SallyportError('ERR_INTERNAL', `${path}: refused without a reason`)
  }
  const { assertions } = validated.value
  refuse([
    ...checkAssertions('ERR_CONFIG_INVALID', document, assertions),
    ...assertions.flatMap(({ profiles: globs }, index) =>
      profiles.some((profile) => isFor(globs, profile))
        ? []
        : [
            issue('ERR_CONFIG_INVALID', document, ['assertions', index, 'profiles'], {
              got: globs.join(', '),
              expected: `one of those that are verified: ${profiles.join(', ')}`,
              mend: 'verify that profile too, or take the line out: nobody would try it',
            }),
          ],
    ),
  ])
  const stated = statedIn(document, assertions)
  return new Map(
    profiles.map((profile) => [
      profile,
      stated.filter((_, index) => isFor(assertions[index]?.profiles ?? [], profile)),
    ]),
  )
}

const isFor = (globs: readonly string[], profile: string): boolean =>
  globs.some((glob) => matchesName(glob, profile))

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const got = errnoOf(error)
    if (got === null) throw error
    throw new SallyportError(
      'ERR_CONFIG_NOT_FOUND',
      `${path}: cannot be read (${got}); name a file of assertions`,
      { file: path, got },
      { cause: error },
    )
  }
}
