// A verification that did not come to its end: what is said in the place of what was not tried.
import { SallyportError } from '../errors.ts'
import { type Inspection, overall, type Verification } from './result.ts'

/** A verification that was not through in time, with what it had come to. */
export const lateError = (
  stage: string,
  { patienceMs, isStuck }: { readonly patienceMs: number; readonly isStuck: boolean },
): SallyportError => {
  const late = `it was not done within ${patienceMs / 1000} s, and had come to: ${stage}`
  return new SallyportError(
    'ERR_CALL_TIMEOUT',
    isStuck
      ? `${late}. What was made there does not end when it is told to; see sallyport doctor, and whether sallyport-init is the one that was installed`
      : `${late}; see what else keeps this machine busy`,
    { stage, patienceMs },
  )
}

/** What there is to say of everything that was tried. */
export type Found = Pick<Verification, 'probes' | 'inspections' | 'assertions' | 'enforcedBy'>

export const nothingFound: Found = {
  probes: [],
  inspections: [],
  assertions: [],
  enforcedBy: { memory: 'none', pids: 'none', cpu: 'none', files: 'none', tmp: 'none' },
}

/** All of it that has a verdict. */
export const everything = ({
  probes,
  inspections,
  assertions,
}: Pick<Found, 'probes' | 'inspections' | 'assertions'>) => [...probes, ...inspections, ...assertions]

/**
 * What of it was not shown, each by its name and why; null where another try is not called for. All that a machine which is busy
 * leaves untried is tried once more; what was seen open is a failure, and stays one.
 */
export const notShown = (found: Found): string | null => {
  const all = everything(found)
  if (overall(all) !== 'error' || all.some(({ verdict }) => verdict === 'fail')) return null
  const lacking = all
    .filter(({ verdict }) => verdict === 'error')
    .map((each) => `${'id' in each ? each.id : each.text}: ${each.observed}`)
  const more = lacking.length - mostNamed
  return [...lacking.slice(0, mostNamed), ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}

/** As many as are named of what was not shown. */
const mostNamed = 8

/** What stands in the place of all of it. */
export const notTried = ({ code, message }: SallyportError): Inspection => ({
  id: 'run.complete',
  protects: 'Everything was tried, to the end.',
  expected: 'an end',
  observed: `${code}: ${message}`,
  verdict: 'error',
  evidence: [],
})
