// A verification that did not come to its end: what is said in the place of what was not tried.
import { SallyportError } from '../errors.ts'
import type { Inspection, Verification } from './result.ts'

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

/** What stands in the place of all of it. */
export const notTried = ({ code, message }: SallyportError): Inspection => ({
  id: 'run.complete',
  protects: 'Everything was tried, to the end.',
  expected: 'an end',
  observed: `${code}: ${message}`,
  verdict: 'error',
  evidence: [],
})
