// What a draft can do without: each grant is taken away in turn, and stays away where the same drive passes without it.
import { availableParallelism } from 'node:os'
import type { DraftParts } from './draft.ts'

/** One thing that a draft can do without, perhaps. */
interface Candidate {
  readonly what: string
  readonly without: (parts: DraftParts) => DraftParts
}

export interface Shrunk {
  readonly parts: DraftParts
  /** What the draft had and the drive did not need */
  readonly dropped: readonly string[]
  /** What was tried to go without, and could not */
  readonly needed: readonly string[]
}

/** Returns the parts without what is not needed. `passes` runs the drive under a draft of the parts that it is given. */
export const shrink = async (
  whole: DraftParts,
  passes: (parts: DraftParts) => Promise<boolean>,
): Promise<Shrunk> => {
  const { parts, rests } = await narrow(whole, passes)
  const candidates = candidatesOf(parts)
  const isSpare = await each(candidates, ({ without }) => passes(without(parts)))
  const spare = candidates.filter((_, index) => isSpare[index])
  const together = spare.reduce((fewer, { without }) => without(fewer), parts)
  const { left, dropped } =
    spare.length === 0 || (await passes(together))
      ? { left: together, dropped: spare }
      : await oneByOne(spare, parts, passes)
  return {
    parts: left,
    dropped: [...rests, ...dropped.map(({ what }) => what)],
    needed: candidates.filter((candidate) => !dropped.includes(candidate)).map(({ what }) => what),
  }
}

/** In place of a folder that was only listed, what was used in it, where that does; what is in there is tried in turn. */
const narrow = async (
  whole: DraftParts,
  passes: (parts: DraftParts) => Promise<boolean>,
): Promise<{ readonly parts: DraftParts; readonly rests: readonly string[] }> => {
  let parts = whole
  const rests: string[] = []
  const { read, narrower } = whole.needs
  const waiting = read.map(({ path }) => path)
  for (let folder = waiting.shift(); folder !== undefined; folder = waiting.shift()) {
    const inside = narrower.get(folder)
    if (inside === undefined) continue
    const fewer = withNeeds(parts, {
      read: parts.needs.read.flatMap((grant) => (grant.path === folder ? inside : grant)),
    })
    if (!(await passes(fewer))) continue
    parts = fewer
    rests.push(`reading the rest of ${folder}`)
    waiting.push(...inside.map(({ path }) => path))
  }
  return { parts, rests }
}

/** Two that can each be missed may not be missed together, such as two ways to one thing. */
const oneByOne = async (
  spare: readonly Candidate[],
  parts: DraftParts,
  passes: (parts: DraftParts) => Promise<boolean>,
): Promise<{ readonly left: DraftParts; readonly dropped: readonly Candidate[] }> => {
  let left = parts
  const dropped: Candidate[] = []
  for (const candidate of spare) {
    const fewer = candidate.without(left)
    if (!(await passes(fewer))) continue
    left = fewer
    dropped.push(candidate)
  }
  return { left, dropped }
}

/** As many at once as there are cores. */
const each = async <T>(
  all: readonly T[],
  judge: (one: T) => Promise<boolean>,
): Promise<readonly boolean[]> => {
  const judged: boolean[] = []
  const waiting = [...all.entries()]
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      judged[next[0]] = await judge(next[1])
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  return judged
}

const candidatesOf = ({ needs, pass, set }: DraftParts): readonly Candidate[] => [
  ...needs.read.map(({ path }) => ({
    what: `reading ${path}`,
    without: (parts: DraftParts) =>
      withNeeds(parts, { read: parts.needs.read.filter((grant) => grant.path !== path) }),
  })),
  ...needs.write.map(({ path }) => ({
    what: `writing ${path}`,
    without: (parts: DraftParts) =>
      withNeeds(parts, { write: parts.needs.write.filter((grant) => grant.path !== path) }),
  })),
  ...needs.network.map(({ host, port }) => ({
    what: `connecting to ${host}:${port}`,
    without: (parts: DraftParts) =>
      withNeeds(parts, {
        network: parts.needs.network.filter((grant) => grant.host !== host || grant.port !== port),
      }),
  })),
  ...(needs.started.length === 0
    ? []
    : [{ what: 'starting programs', without: (parts: DraftParts) => withNeeds(parts, { started: [] }) }]),
  ...pass.map((name) => ({
    what: `the variable ${name}`,
    without: (parts: DraftParts) => ({ ...parts, pass: parts.pass.filter((other) => other !== name) }),
  })),
  ...Object.keys(set).map((name) => ({
    what: `the variable ${name}`,
    without: (parts: DraftParts) => ({
      ...parts,
      set: Object.fromEntries(Object.entries(parts.set).filter(([other]) => other !== name)),
    }),
  })),
]

const withNeeds = (parts: DraftParts, needs: Partial<DraftParts['needs']>): DraftParts => ({
  ...parts,
  needs: { ...parts.needs, ...needs },
})
