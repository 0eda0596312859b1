// The assertions that people state, tried by the probes' program in the same sandbox that the battery is tried in.
import { matchesName } from '../lib/glob.ts'
import type { Assertion, StatedAssertion } from '../schema/assertion.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import { isIP } from 'node:net'
import { type Answer, finds } from './attempt.ts'
import { type Lab, type Tried, tryInside } from './lab.ts'
import type { AssertionResult, Verdict } from './result.ts'

/** What is asked of the program for one assertion, and what its answer says of it. */
interface Question {
  readonly asks: readonly string[]
  /** Whether it takes so much that it has a launch to itself */
  readonly isAlone: boolean
  judge(answer: Answer): Judged
}

type Judged = Pick<AssertionResult, 'verdict' | 'observed' | 'evidence'>

/** What stands for an answer where the sandbox ended for want of memory. */
const outOfMemory: Answer = { outcome: 'oom', text: '', ms: 0 }

/** Where a sandbox with a network has its resolver. */
const resolver = '127.0.0.53'

/** Beyond the limit by that much, so that what is counted otherwise than here does not hide an end. */
const beyond = { processes: 16, bytes: 64 * 1024 * 1024 } as const

/**
 * Tries all assertions in launches of the lab's profile. What needs a server (`cannot call`, `must ask`) cannot be tried
 * here and is an error, as is whatever the program did not answer: nothing holds by not being tried.
 */
export const tryAssertions = async (
  lab: Lab,
  stated: readonly StatedAssertion[],
): Promise<readonly AssertionResult[]> => {
  const questions = stated.map(({ assertion }) => questionOf(assertion, lab.profile))
  const together = questions.filter((question) => question?.isAlone === false)
  const { answers } = together.length === 0 ? { answers: [] } : await ask(lab, together)
  const results: AssertionResult[] = []
  let next = 0
  for (const [index, { text, reason, file, line }] of stated.entries()) {
    const question = questions[index] ?? null
    const judged =
      question === null
        ? untried('it speaks of a tool, and a profile by itself has no server')
        : judgedBy(question, question.isAlone ? await aloneAnswer(lab, question) : answers[next++])
    results.push({ text, reason, file, line, ...judged })
  }
  return results
}

const ask = (lab: Lab, questions: readonly (Question | null)[]): Promise<Tried> =>
  tryInside(
    lab,
    questions.flatMap((question) => (question === null ? [] : [finds(question.asks, () => null)])),
  )

const aloneAnswer = async (lab: Lab, question: Question): Promise<Answer | undefined> => {
  const { answers, exit } = await ask(lab, [question])
  return exit?.reason === 'oom' ? outOfMemory : answers[0]
}

const judgedBy = (question: Question, answer: Answer | undefined): Judged => {
  if (answer === undefined) return untried('the sandbox ended before it was tried')
  if (['late', 'no-effect', 'unknown'].includes(answer.outcome))
    return untried(`the attempt came to nothing: ${answer.outcome} ${answer.text}`.trim())
  return question.judge(answer)
}

const untried = (observed: string): Judged => ({ verdict: 'error', observed, evidence: [] })

const questionOf = (assertion: Assertion, profile: ProfileSettings): Question | null => {
  switch (assertion.about) {
    case 'read':
    case 'write':
    case 'exec':
      return reaching([`${assertion.about}-any`, assertion.path], assertion.isAllowed)
    case 'connect': {
      const { host, port, isAllowed } = assertion
      const asks = isIP(host) === 0 ? ['host', resolver, host] : ['tcp', host]
      return reaching([...asks, String(port)], isAllowed)
    }
    case 'resolve':
      return reaching(['dns', resolver, '53', assertion.host, '1'], assertion.isAllowed)
    case 'env':
      return seeing(assertion.name)
    case 'exceed':
      return exceeding(assertion.limit, profile)
    case 'call':
    case 'ask':
      return null
  }
}

/** An attempt that is open where it reaches what it names, and tells what it reached, a line each. */
const reaching = (asks: readonly string[], isAllowed: boolean): Question => ({
  asks,
  isAlone: false,
  judge: ({ outcome, text }) => ({
    verdict: verdictOf((outcome === 'open') === isAllowed),
    observed: outcome === 'open' ? 'open' : outcome,
    evidence: text.split('\n').filter((line) => line !== ''),
  }),
})

/** Values are never part of the evidence: what was seen may be a secret. */
const seeing = (glob: string): Question => ({
  asks: ['environment'],
  isAlone: false,
  judge: ({ outcome, text }) => {
    if (outcome !== 'open') return untried(`the environment could not be read: ${outcome}`)
    const names = text.split('\n').flatMap((line) => line.split('=')[0] ?? [])
    const seen = names.filter((name) => name !== '' && matchesName(glob, name))
    return {
      verdict: verdictOf(seen.length === 0),
      observed: seen.length === 0 ? 'absent' : `seen: ${seen.join(', ')}`,
      evidence: [],
    }
  },
})

type LimitName = Extract<Assertion, { about: 'exceed' }>['limit']

/** How each limit says no. What is stopped by something else has not met it. */
const ends: Readonly<Record<LimitName, readonly string[]>> = {
  memory: ['killed', 'oom', 'ENOMEM'],
  pids: ['EAGAIN'],
  files: ['EMFILE'],
  disk: ['ENOSPC', 'EFBIG'],
}

const exceeding = (limit: LimitName, { limits, filesystem }: ProfileSettings): Question => ({
  asks: {
    memory: ['touch-memory', String(limits.memoryBytes + beyond.bytes)],
    pids: ['fork-many', String(limits.pids + beyond.processes)],
    files: ['open-many', String(limits.openFiles + 1)],
    disk: ['reserve', '/tmp', String(filesystem.tmpBytes + 1)],
  }[limit],
  isAlone: limit === 'memory' || limit === 'pids',
  judge: ({ outcome, text }) => {
    const evidence = text === '' ? [] : [`${limit}: ${text}`]
    if (outcome === 'open') return { verdict: 'fail', observed: 'taken in full', evidence }
    return ends[limit].includes(outcome)
      ? { verdict: 'pass', observed: `stopped: ${outcome}`, evidence }
      : untried(`stopped by ${outcome}, which is not how this limit says no`)
  },
})

const verdictOf = (holds: boolean): Verdict => (holds ? 'pass' : 'fail')
