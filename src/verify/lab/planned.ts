// Attempts that are launches which are only planned: what would be mounted is judged, and nothing is started.
import { SallyportError } from '../../errors.ts'
import type { Mount } from '../../sandbox/spec.ts'
import type { Answer, Attempt } from '../attempt.ts'
import type { Lab } from './lab.ts'
import { planOf } from './try.ts'
import { type Rule, ruleOf } from './rules.ts'

/** One launch of many, with what is to be told of it where it is let through. */
export interface Wanted {
  readonly what: string
  readonly of: (lab: Lab) => Lab
  /** What is done once it was planned, as it has to be then, and before it is planned again, which is what is judged */
  readonly changing?: () => void
  /** Whether what it asks for has gone from the machine since it was found there: then nothing was asked */
  readonly isGone?: () => boolean
}

/**
 * Launches each of which must be refused by this rule. One that another rule refuses is a failure of its own: what is guarded did
 * not answer, and would be open wherever that other did not happen to.
 */
export const refusesPlans = (label: string, wanted: readonly Wanted[], rule: Rule): Attempt => ({
  asks: [],
  label,
  plan: async (lab) => {
    const refusals: string[] = []
    for (const { what, of, changing, isGone } of wanted) {
      const asking = of(lab)
      const first = await planned(asking)
      changing?.()
      const found = changing === undefined || typeof first === 'string' ? first : await planned(asking)
      const isRefused = typeof found === 'string' && ruleOf(found) === rule
      if (!isRefused && isGone?.() === true) refusals.push(gone)
      else if (typeof found === 'string') refusals.push(found)
      else return { outcome: 'open', text: what }
    }
    return { outcome: 'refused', text: refusals.join('\n') }
  },
  meaning({ outcome, text }) {
    if (outcome === 'open')
      return { is: 'open', observed: `planned, not refused by “${rule}”: ${text}`, errno: null }
    const refusals = text.split('\n')
    if (outcome !== 'refused' || text === '' || refusals.every((line) => line === gone))
      return { is: 'broken', observed: outcome, errno: null }
    const at = refusals.findIndex((line) => line !== gone && ruleOf(line) !== rule)
    return at < 0
      ? { is: 'shut', observed: `refused by “${rule}”`, errno: null }
      : {
          is: 'otherwise',
          observed: `not refused by “${rule}”: ${wanted[at]?.what}, ${by(refusals[at] ?? '')}`,
          errno: null,
        }
  },
})

/** In the place of a refusal, where what was asked for was there no more. */
const gone = 'gone'

const by = (refusal: string): string => `refused by “${ruleOf(refusal) ?? 'none of these rules'}”: ${refusal}`

/** A launch that is planned, in whose mounts `wrong` finds nothing amiss. */
export const mountsOfPlan = (
  label: string,
  of: Wanted['of'],
  wrong: (mounts: ReadonlyMap<string, Mount['access']>) => string | null,
): Attempt => ({
  asks: [],
  label,
  plan: async (lab) => {
    const found = await planned(of(lab))
    if (typeof found === 'string') return { outcome: 'refused', text: found }
    const amiss = wrong(new Map(found.map(({ target, access }) => [target, access])))
    return { outcome: amiss === null ? 'found' : 'open', text: amiss ?? '' }
  },
  meaning: ({ outcome, text }) =>
    outcome === 'refused'
      ? { is: 'broken', observed: `refused: ${text}`, errno: null }
      : {
          is: outcome === 'open' ? 'open' : 'shut',
          observed: text === '' ? 'as expected' : text,
          errno: null,
        },
})

/** What is asked of the supervisor without a launch: the names of what is missing. */
export const lacks = (label: string, missing: (lab: Lab) => readonly string[]): Attempt => ({
  asks: [],
  label,
  plan: (lab) => {
    const names = missing(lab)
    return Promise.resolve({
      outcome: names.length === 0 ? 'found' : 'open',
      text: names.slice(0, 5).join(' '),
    })
  },
  meaning: ({ outcome, text }) =>
    outcome === 'open'
      ? { is: 'open', observed: `missing: ${text}`, errno: null }
      : { is: 'shut', observed: 'as expected', errno: null },
})

/** The answers of attempts that are all of this kind, one after the other. */
export const tryPlans = async (lab: Lab, attempts: readonly Attempt[]): Promise<readonly Answer[]> => {
  const answers: Answer[] = []
  for (const { plan } of attempts) {
    const from = performance.now()
    const answer = (await plan?.(lab)) ?? { outcome: 'unknown', text: 'nothing was planned' }
    answers.push({ ...answer, ms: performance.now() - from })
  }
  return answers
}

/** The mounts, or in one line why there are none. */
const planned = async (lab: Lab): Promise<readonly Mount[] | string> => {
  try {
    return (await planOf(lab)).spec.mounts
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error
    return `${error.code} ${error.message}`.replaceAll('\n', ' ')
  }
}
