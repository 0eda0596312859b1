// The assertions that people state, tried by the probes' program in the same sandbox that the battery is tried in.
import type { Assertion, StatedAssertion } from '../../schema/assertion.ts'
import type { EgressEvent, EgressGrant } from '../../schema/egress.ts'
import { type Answer, finds } from '../attempt.ts'
import type { KernelInside, Lab } from '../lab/lab.ts'
import { reserveBytes } from '../battery/taking.ts'
import { type Tried, tryInside, tryOutside } from '../lab/try.ts'
import type { AssertionResult } from '../result.ts'
import { type CallScene, judgeCall } from './calls.ts'
import { type Judged, linesOf, type Question, questionOf, untried } from './questions.ts'
import type { WayOut } from '../lab/way-out.ts'

/** What stands for an answer where the sandbox ended for want of memory. */
const outOfMemory: Answer = { outcome: 'oom', text: '', ms: 0 }

/** The same in gVisor, which ends as a whole, and of which the engine may not tell why. */
const endedWhole: Answer = { outcome: 'ended', text: '', ms: 0 }

/** What assertions need beside the lab. */
export interface Stage {
  readonly wayOut: Pick<WayOut, 'openRealDoor'>
  /** What it may reach: a server its own targets, a server of a profile by itself all of the profile's */
  readonly grants: readonly EgressGrant[]
  /** The server whose calls are decided; null where a profile is verified by itself */
  readonly calls: CallScene | null
  /** What answers the calls of whatever runs in there: gVisor may end where it gets no more */
  readonly kernel: KernelInside
}

/**
 * Tries all assertions in launches of the lab's profile, behind a door that leads where the grants say. What speaks of
 * tools is decided by policy, and is an error without a server, as is whatever the program did not answer: nothing holds
 * by not being tried.
 */
export const tryAssertions = async (
  lab: Lab,
  stated: readonly StatedAssertion[],
  { wayOut, grants, calls, kernel }: Stage,
): Promise<readonly AssertionResult[]> => {
  const questions = await Promise.all(
    stated.map(({ assertion }) => questionOf(assertion, lab.profile, grants)),
  )
  const together = questions.filter((question) => question?.isAlone === false)
  const { answers, doors } =
    together.length === 0 ? { answers: [], doors: [] } : await askThere(lab, together, grants, wayOut)
  const results: AssertionResult[] = []
  let next = 0
  for (const [index, { assertion, text, reason, file, line }] of stated.entries()) {
    const question = questions[index] ?? null
    const judged =
      question === null
        ? await judgedByPolicy(assertion, calls)
        : question.isAlone
          ? await judgedAlone(lab, question, kernel)
          : judgedBy(question, answers[next++], doors)
    results.push({ text, reason, file, line, ...judged })
  }
  return results
}

const ask = (lab: Lab, questions: readonly (Question | null)[]): Promise<Tried> =>
  tryInside(
    lab,
    questions.flatMap((question) => (question === null ? [] : [finds(question.asks, () => null)])),
  )

/** What a limit stops passes only where the machine would not have stopped it, too. */
const judgedAlone = async (lab: Lab, question: Question, kernel: KernelInside): Promise<Judged> => {
  const { asks, takesBytes = 0, isToBeHadOutside = false } = question
  const free = process.availableMemory()
  if (takesBytes > 0 && free < takesBytes + reserveBytes)
    return untried(`it takes ${takesBytes} bytes, and this host has ${free} free`)
  const judged = judgedBy(question, await aloneAnswer(lab, question, kernel), [])
  if (judged.verdict !== 'pass' || !isToBeHadOutside) return judged
  const [outside] = (await tryOutside(lab, [finds(asks, () => null)])).answers
  const evidence = [...judged.evidence, `outside: ${outside?.outcome ?? 'no answer'}`]
  return outside?.outcome === 'open'
    ? { ...judged, evidence }
    : untried('it was not to be had outside of the sandbox either', evidence)
}

const aloneAnswer = async (
  lab: Lab,
  question: Question,
  kernel: KernelInside,
): Promise<Answer | undefined> => {
  const { answers, exit } = await ask(lab, [question])
  if (kernel === 'gvisor' && answers.length === 0) return endedWhole
  return exit?.reason === 'oom' ? outOfMemory : answers[0]
}

/** Asks in a sandbox that has the subject's own way out, whose events are all told when it has ended. */
const askThere = async (
  lab: Lab,
  questions: readonly (Question | null)[],
  grants: readonly EgressGrant[],
  { openRealDoor }: Stage['wayOut'],
): Promise<Pick<Tried, 'answers'> & { readonly doors: readonly EgressEvent[] }> => {
  if (lab.openDoor === null) return { answers: (await ask(lab, questions)).answers, doors: [] }
  const doors: EgressEvent[] = []
  await using door = openRealDoor(grants, (event) => void doors.push(event))
  const { answers } = await ask(
    { ...lab, server: { ...lab.server, egress: grants }, openDoor: door.open },
    questions,
  )
  await door[Symbol.asyncDispose]()
  return { answers, doors }
}

const judgedByPolicy = (assertion: Assertion, calls: CallScene | null): Promise<Judged> | Judged => {
  if (assertion.about !== 'call' && assertion.about !== 'ask') return untried('there was nothing to try')
  return calls === null
    ? untried('it speaks of a tool, and a profile by itself has no server')
    : judgeCall(assertion, calls)
}

const judgedBy = (question: Question, answer: Answer | undefined, doors: readonly EgressEvent[]): Judged => {
  if (answer === undefined) return untried('the sandbox ended before it was tried')
  if (['late', 'no-effect', 'unknown'].includes(answer.outcome)) {
    const lines = linesOf(answer.text)
    return untried(
      `the attempt came to nothing: ${[answer.outcome, ...lines.slice(-1)].join(' ')}`,
      lines.slice(0, -1),
    )
  }
  return question.judge(answer, doors)
}
