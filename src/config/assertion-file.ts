// A file of assertions for `sallyport verify --tests`: read, validated, and given to the profiles and servers that each names.
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { SallyportError } from '../errors.ts'
import { matchesName } from '../lib/glob.ts'
import type { StatedAssertion } from '../schema/assertion.ts'
import type { Assertions } from '../schema/types.gen.ts'
import { validate } from '../schema/validate.ts'
import { checkAssertions, statedIn } from './assertions.ts'
import { parseDocument } from './document.ts'
import { onNamed } from './named-file.ts'
import { issue, refuse, type Issue } from './refusal.ts'

/** What is verified: a profile by itself, or a server under its profile. */
export interface Verified {
  readonly profile: string
  readonly server: string | null
}

/**
 * Returns what the file states for each of them, in their order. ERR_CONFIG_NOT_FOUND where it cannot be read,
 * ERR_CONFIG_INVALID where a line is none, or is for none of them: what is stated and not tried would pass.
 */
export async function readAssertions(
  file: string,
  verified: readonly Verified[],
): Promise<readonly (readonly StatedAssertion[])[]> {
  const path = resolve(file)
  const mend = 'name a file of assertions'
  const named = { path, access: 'read', code: 'ERR_CONFIG_NOT_FOUND', mend } as const
  const document = parseDocument(path, await onNamed(named, () => readFile(path, 'utf8')))
  const validated = validate('assertions', document.value)
  if (!validated.ok) {
    refuse(validated.problems.map((problem): Issue => ({ code: 'ERR_CONFIG_INVALID', document, problem })))
    throw new SallyportError('ERR_INTERNAL', `${path}: refused without a reason`)
  }
  const { assertions } = validated.value
  refuse([
    ...checkAssertions('ERR_CONFIG_INVALID', document, assertions),
    ...assertions.flatMap((assertion, index) => {
      if (verified.some((one) => isFor(assertion, one))) return []
      const { profiles, servers } = assertion
      const key = servers === null ? 'profiles' : 'servers'
      return [
        issue('ERR_CONFIG_INVALID', document, ['assertions', index, key], {
          got: (servers ?? profiles).join(', '),
          expected: `one of those that are verified: ${verified.map(nameOf).join(', ')}`,
          mend: `verify that ${servers === null ? 'profile' : 'server'} too, or take the line out: nobody would try it`,
        }),
      ]
    }),
  ])
  const stated = statedIn(document, assertions)
  return verified.map((one) =>
    stated.filter((_, index) => {
      const assertion = assertions[index]
      return assertion !== undefined && isFor(assertion, one)
    }),
  )
}

const isFor = (
  { profiles, servers }: Pick<Assertions['assertions'][number], 'profiles' | 'servers'>,
  { profile, server }: Verified,
): boolean =>
  profiles.some((glob) => matchesName(glob, profile)) &&
  (servers === null || (server !== null && servers.some((glob) => matchesName(glob, server))))

const nameOf = ({ profile, server }: Verified): string =>
  server === null ? profile : `${server} (${profile})`
