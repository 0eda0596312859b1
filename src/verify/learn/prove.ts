// The proof of a draft: the same drive passes under it, and no grant can be taken away without its failing.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { type Place, type Ran, runOnce } from './confine.ts'
import { draftOf, type DraftParts } from './draft.ts'
import { formatDraft } from './draft-text.ts'
import type { Drive } from './drive.ts'
import { shrink } from './shrink.ts'
import type { Answer } from './talk.ts'

/** What the proof came to. */
export interface Proof {
  readonly holds: boolean
  /** Requests of the drive, and how many of their answers were the same to the byte as in the observed run */
  readonly requests: number
  readonly same: number
  /** Requests that failed in the observed run already, so that whatever they need was not learned */
  readonly failed: readonly string[]
  /** What was otherwise than in the observed run, one line each; empty where it holds */
  readonly differences: readonly string[]
  /** What the draft had and the drive did not need */
  readonly dropped: readonly string[]
  /** What was tried to go without, and could not */
  readonly needed: readonly string[]
}

/** Proves the draft of these parts, and returns them without what turned out not to be needed. */
export const prove = async (
  place: Place,
  parts: DraftParts,
  drive: Drive,
  observed: readonly Answer[],
  { onProgress }: { readonly onProgress: (stage: string) => void },
): Promise<{ readonly proof: Proof; readonly parts: DraftParts }> => {
  const failed = observed.flatMap(({ to, outcome }) => (outcome === 'result' ? [] : [`${to}: ${outcome}`]))
  const unlearned = unlearnedOf(observed)
  if (unlearned.length > 0) {
    const nothing = { requests: observed.length, same: 0, failed, dropped: [], needed: [] }
    return { proof: { ...nothing, holds: false, differences: unlearned }, parts }
  }
  onProgress('the same drive under the draft')
  const under = await runUnder(place, parts, drive)
  const answers = under instanceof SallyportError ? [] : under.answers
  const differences = differencesOf(
    observed.map((answer) => ({ ...answer, digest: '' })),
    under,
  )
  const same = answers.filter(({ digest }, index) => digest === observed[index]?.digest).length
  const found = { holds: differences.length === 0, requests: observed.length, same, failed, differences }
  if (!found.holds) return { proof: { ...found, dropped: [], needed: [] }, parts }
  onProgress('the same drive without each grant in turn')
  const expected = stableOf(observed, answers)
  const quiet = { ...place, onStderr: () => undefined }
  const shrunk = await shrink(
    parts,
    async (fewer) => differencesOf(expected, await runUnder(quiet, fewer, drive)).length === 0,
  )
  onProgress('the same drive, again')
  const unsteady = await unsteadyIn(expected, () => runUnder(quiet, shrunk.parts, drive))
  if (unsteady.length > 0)
    return { proof: { ...found, holds: false, differences: unsteady, dropped: [], needed: [] }, parts }
  const { dropped, needed } = shrunk
  return { proof: { ...found, dropped, needed }, parts: shrunk.parts }
}

/** What passed once without a grant may have been luck: a server that uses one thing at one time, and another at the next. */
const confirmations = 3

/** Returns what was otherwise in one of some more runs; nothing where all passed. */
export const unsteadyIn = async (
  expected: readonly Answer[],
  run: () => Promise<Ran | SallyportError>,
): Promise<readonly string[]> => {
  for (let count = 0; count < confirmations; count++) {
    const differences = differencesOf(expected, await run())
    if (differences.length > 0)
      return differences.map(
        (each) => `it does not need the same each time, so that nothing was left out: ${each}`,
      )
  }
  return []
}

/** That it fails under the draft as it failed when it was watched proves nothing of a server that never worked. */
const unlearnedOf = (observed: readonly Answer[]): readonly string[] =>
  observed.flatMap(({ to, outcome }) =>
    outcome === 'none' || (to === 'initialize' && outcome !== 'result')
      ? [
          `${to}: ${outcome === 'none' ? 'no answer' : outcome} when it was observed, so nothing was learned of it`,
        ]
      : [],
  )

/** Runs the drive under the draft as a file of its own, found and loaded as any other profile is. */
const runUnder = async (place: Place, parts: DraftParts, drive: Drive): Promise<Ran | SallyportError> => {
  const directory = await mkdtemp(join(place.folder, 'draft-'))
  try {
    await mkdir(join(directory, 'profiles'))
    const file = join(directory, 'profiles', `${parts.name}.yaml`)
    await writeFile(file, formatDraft(await draftOf(parts), parts), { mode: 0o600 })
    return await runOnce(place, { profile: parts.name, directory, drive })
  } catch (error) {
    place.signal.throwIfAborted()
    if (error instanceof SallyportError && error.code !== 'ERR_INTERNAL') return error
    throw error
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Answers that were the same twice must stay the same; of the others only how they ended is known. */
const stableOf = (one: readonly Answer[], other: readonly Answer[]): readonly Answer[] =>
  one.map((answer, index) => (answer.digest === other[index]?.digest ? answer : { ...answer, digest: '' }))

const differencesOf = (expected: readonly Answer[], ran: Ran | SallyportError): readonly string[] => {
  if (ran instanceof SallyportError) return [ran.message]
  const differences = expected.flatMap(({ to, outcome, digest }, index) => {
    const got = ran.answers[index]
    if (got?.outcome !== outcome) return [`${to}: ${got?.outcome ?? 'not reached'}, was ${outcome}`]
    return digest === '' || got.digest === digest ? [] : [`${to}: another answer`]
  })
  return ran.exit === null || differences.length > 0 ? differences : [`the server: ${ran.exit}`]
}
