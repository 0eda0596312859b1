// The assertions that people state, tried by the probes' program in the same sandbox that the battery is tried in.
import { isIP } from 'node:net'
import { matchesName } from '../lib/glob.ts'
import type { Assertion, StatedAssertion } from '../schema/assertion.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import { type EgressEvent, type EgressGrant, tlsPorts } from '../schema/egress.ts'
import { type Answer, finds } from './attempt.ts'
import { opening } from './opening.ts'
import { type Lab, type Tried, tryInside } from './lab.ts'
import type { AssertionResult, Verdict } from './result.ts'
import type { KernelInside } from './probe.ts'
import { type CallScene, judgeCall } from './stated-calls.ts'
import type { WayOut } from './way-out.ts'

/** What is asked of the program for one assertion, and what its answer says of it. */
interface Question {
  readonly asks: readonly string[]
  /** Whether it takes so much that it has a launch to itself */
  readonly isAlone: boolean
  /** `doors` is what happened at the way out of the sandbox that answered; empty where there is none */
  judge(answer: Answer, doors: readonly EgressEvent[]): Judged
}

type Judged = Pick<AssertionResult, 'verdict' | 'observed' | 'evidence'>

/** What stands for an answer where the sandbox ended for want of memory. */
const outOfMemory: Answer = { outcome: 'oom', text: '', ms: 0 }

/** The same in gVisor, which ends as a whole, and of which the engine may not tell why. */
const endedWhole: Answer = { outcome: 'ended', text: '', ms: 0 }

/** Where a sandbox with a network has its resolver. */
const resolver = '127.0.0.53'

/** Beyond the limit by that much, so that what is counted otherwise than here does not hide an end. */
const beyond = { processes: 16, bytes: 64 * 1024 * 1024 } as const

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
        : judgedBy(
            question,
            question.isAlone ? await aloneAnswer(lab, question, kernel) : answers[next++],
            doors,
          )
    results.push({ text, reason, file, line, ...judged })
  }
  return results
}

const ask = (lab: Lab, questions: readonly (Question | null)[]): Promise<Tried> =>
  tryInside(
    lab,
    questions.flatMap((question) => (question === null ? [] : [finds(question.asks, () => null)])),
  )

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
  if (['late', 'no-effect', 'unknown'].includes(answer.outcome))
    return untried(`the attempt came to nothing: ${answer.outcome} ${answer.text}`.trim())
  return question.judge(answer, doors)
}

const untried = (observed: string): Judged => ({ verdict: 'error', observed, evidence: [] })

const questionOf = async (
  assertion: Assertion,
  profile: ProfileSettings,
  grants: readonly EgressGrant[],
): Promise<Question | null> => {
  switch (assertion.about) {
    case 'read':
    case 'write':
    case 'exec':
      return reaching([`${assertion.about}-any`, assertion.path], assertion.isAllowed)
    case 'connect': {
      const { host, port } = assertion
      const granted = grants.find((grant) => grant.port === port && matchesName(grant.host, host))
      const words = await opening({ host, port, isTls: granted?.tls ?? tlsPorts.has(port) })
      const asks = isIP(host) === 0 ? ['host', resolver, host] : ['say', host]
      return connecting([...asks, String(port), words.toString('hex')], assertion, profile)
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

/** Something is reached where the door dialled it, and bytes of it came back; what the door itself answers is not it. */
const connecting = (
  asks: readonly string[],
  { host, port, isAllowed }: Extract<Assertion, { about: 'connect' }>,
  { network }: ProfileSettings,
): Question => ({
  asks,
  isAlone: false,
  judge({ outcome, text }, doors) {
    const own = doors.filter((event) => event.host === host && event.port === port)
    const dialled = own.filter(({ kind, verdict }) => kind === 'opened' || verdict === 'connected')
    const heard = own.some(({ bytesDown }) => bytesDown > 0)
    const isOpen = outcome === 'open'
    const evidence = [
      ...(text === '' ? [] : [`inside: ${text}`]),
      ...own.map(
        ({ kind, address, reason, bytesUp, bytesDown }) =>
          `at the door: ${[kind, address, reason].filter((part) => part !== null).join(' ')}, ${bytesUp} bytes up, ${bytesDown} down`,
      ),
    ]
    if (isAllowed) {
      const isReached = isOpen && heard
      const missed = isOpen ? 'answered by the door, not by the host' : outcome
      return { verdict: verdictOf(isReached), observed: isReached ? 'bytes came back' : missed, evidence }
    }
    // Without a door whatever answers is not ours.
    const isReached = dialled.length > 0 || (isOpen && network.mode === 'none')
    const refused = own.find(({ kind }) => kind === 'refused')?.reason ?? outcome
    const observed = isReached ? 'it was dialled' : `not a byte reached it: ${refused}`
    return { verdict: verdictOf(!isReached), observed, evidence }
  },
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
  memory: ['killed', 'oom', 'ENOMEM', 'ended'],
  pids: ['EAGAIN', 'ended'],
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
