// One thing that a probe tries, and what each answer to it means.
import { holdsWithin, within } from '../lib/deadline.ts'
import type { LaunchPlan } from '../sandbox/launch.ts'
import type { Lab } from './lab/lab.ts'

/** What the probes' program says of one attempt. */
export interface Answer {
  /** `open`, the name of an errno, `killed`, `late`, `no-effect` or `unknown`; `oom` and `refused` are of a launch as a whole */
  readonly outcome: string
  /** What the attempt found, where it tells something; at most `textBytes` */
  readonly text: string
  readonly ms: number
}

/** `open`: what was to be shut was not; `broken`: it could not be tried, so nothing is known */
export type Meaning =
  | { readonly is: 'shut' | 'open' | 'otherwise'; readonly observed: string; readonly errno: string | null }
  | {
      readonly is: 'broken'
      readonly observed: string
      readonly errno: null
      /** What was to come did not: nothing by itself, since a machine may be that busy */
      readonly isLate?: true
    }

/** A program that makes attempts, as it is seen from outside while it stands. */
export interface Watched {
  /** Host pid of it, or of the PID 1 above it */
  readonly pid: number
  readonly terminate: () => void
  readonly kill: () => void
  /** Leaves it to itself, as a daemon that dies does */
  readonly abandon: () => void
  /** Kills or stops the relay beside it, where it has one */
  readonly endRelay: (by: 'SIGKILL' | 'SIGSTOP') => Promise<void>
  readonly ended: Promise<unknown>
  /** What it was launched by and from, and null outside of a sandbox */
  readonly launched: { readonly lab: Lab; readonly plan: LaunchPlan } | null
  /** How long what is to come is waited for, ms */
  readonly patienceMs: number
  /** Resolves with its stderr once that ends */
  readonly stderrEnd: () => Promise<unknown>
  /** Resolves once it has said the word on its stderr */
  readonly says: (word: string) => Promise<void>
}

/** As much as the program says of one attempt, in bytes; what is longer ends there. */
export const textBytes = 65_536

/** The variables in an answer to `environment`. */
export const variablesIn = (text: string): readonly { readonly name: string; readonly value: string }[] =>
  text
    .split('\0')
    .filter((variable) => variable !== '')
    .map((variable) => {
      const [name = ''] = variable.split('=', 1)
      return { name, value: variable.slice(name.length + 1) }
    })

export interface Attempt {
  /** What the program is asked: a name and its arguments, none of which has a tab or a line break; empty where it is not asked */
  readonly asks: readonly string[]
  /** What is looked at from outside in its place, once all that was asked is answered; absent where the program is asked */
  readonly watch?: (program: Watched) => Promise<Answer>
  /** What is planned in its place, and not started: all attempts of a probe are so, or none */
  readonly plan?: (lab: Lab) => Promise<Omit<Answer, 'ms'>>
  /** How people call it */
  readonly label: string
  meaning(answer: Answer): Meaning
}

const cannotTell = new Set(['late', 'no-effect', 'unknown'])

const broken = ({ outcome, text }: Answer): Meaning => ({
  is: 'broken',
  observed: `not tried: ${outcome} ${text}`.trim(),
  errno: null,
})

/** An attempt that must be stopped by one of these: errno names, or `killed`. */
export const stops = (asks: readonly string[], by: readonly string[], label = asks.join(' ')): Attempt => ({
  asks,
  label,
  meaning(answer) {
    const { outcome } = answer
    if (cannotTell.has(outcome)) return broken(answer)
    if (outcome === 'open') return { is: 'open', observed: 'open', errno: null }
    const errno = outcome === 'killed' ? null : outcome
    return { is: by.includes(outcome) ? 'shut' : 'otherwise', observed: outcome, errno }
  },
})

/** An attempt in a launch that must not come up, for a reason that says this; where it comes up it is what is to be had there. */
export const refusesLaunch = (asks: readonly string[], why: RegExp, label: string): Attempt => ({
  ...stops(asks, []),
  label,
  meaning(answer) {
    const { outcome, text } = answer
    if (outcome !== 'refused') return stops(asks, []).meaning(answer)
    return why.test(text)
      ? { is: 'shut', observed: 'refused', errno: null }
      : { is: 'broken', observed: `refused, for another reason: ${text}`, errno: null }
  },
})

/** An attempt that must succeed and find what `wrong` has nothing to say about; `wrong` names what is amiss, else null. */
export const finds = (
  asks: readonly string[],
  wrong: (text: string) => string | null,
  label = asks.join(' '),
): Attempt => ({
  asks,
  label,
  meaning(answer) {
    if (cannotTell.has(answer.outcome)) return broken(answer)
    if (answer.outcome !== 'open') return { is: 'otherwise', observed: answer.outcome, errno: answer.outcome }
    const amiss = wrong(answer.text)
    return { is: amiss === null ? 'shut' : 'open', observed: amiss ?? 'as expected', errno: null }
  },
})

/** An attempt that may be stopped by one of these, and where it is not must find nothing amiss. */
export const stopsOrFinds = (
  asks: readonly string[],
  by: readonly string[],
  wrong: (text: string) => string | null,
  label = asks.join(' '),
): Attempt => {
  const [stopped, found] = [stops(asks, by, label), finds(asks, wrong, label)]
  return {
    asks,
    label,
    meaning: (answer) => (answer.outcome === 'open' ? found : stopped).meaning(answer),
  }
}

/** What was to come and did not in the time that there was for it. */
class Late extends Error {}

/** Returns what comes of it, or throws, for `seen`, that it did not come in as much time as whoever looks has. */
export const comes = <T>(
  work: Promise<T>,
  { patienceMs }: Pick<Watched, 'patienceMs'>,
  otherwise: string,
): Promise<T> => within(work, patienceMs, () => new Late(`${otherwise}, ${patienceMs} ms later`))

/** The same for what nothing announces. */
export const holds = async (
  condition: () => boolean,
  { patienceMs }: Pick<Watched, 'patienceMs'>,
  otherwise: () => string,
): Promise<void> => {
  if (!(await holdsWithin(condition, patienceMs))) throw new Late(`${otherwise()}, ${patienceMs} ms later`)
}

/** An attempt that is seen from outside: `wrong` names what is amiss, else null. What does not come in time says nothing. */
export const seen = (label: string, watch: (program: Watched) => Promise<string>, wrong: Wrong): Attempt => {
  const found = finds([], wrong, label)
  return {
    ...found,
    watch: async (program) => {
      const from = performance.now()
      const [outcome, text] = await watch(program).then(
        (text) => ['open', text] as const,
        (error: unknown) =>
          error instanceof Late ? (['late', error.message] as const) : (['unknown', String(error)] as const),
      )
      return { outcome, text, ms: performance.now() - from }
    },
    meaning: (answer) =>
      answer.outcome === 'late'
        ? { is: 'broken', observed: answer.text, errno: null, isLate: true }
        : found.meaning(answer),
  }
}

type Wrong = (text: string) => string | null
