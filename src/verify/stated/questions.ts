// What each stated line asks of the probes' program, what its answer means, and what is told of it.
import { isIP } from 'node:net'
import { matchesName } from '../../lib/glob.ts'
import { words } from '../../lib/words.ts'
import type { Assertion } from '../../schema/assertion.ts'
import { type EgressEvent, type EgressGrant, tlsPorts } from '../../schema/egress.ts'
import type { ProfileSettings } from '../../schema/settings.ts'
import { type Answer, textBytes, variablesIn } from '../attempt.ts'
import { opening } from '../lab/opening.ts'
import type { AssertionResult, Verdict } from '../result.ts'

/** What is asked of the program for one assertion, and what its answer says of it. */
export interface Question {
  readonly asks: readonly string[]
  /** Whether it takes so much that it has a launch to itself */
  readonly isAlone: boolean
  /** Bytes that it takes of the machine's memory, where nothing stops it */
  readonly takesBytes?: number
  /** Whether the machine, too, may answer as its limit does: the same must then be had outside */
  readonly isToBeHadOutside?: true
  /** `doors` is what happened at the way out of the sandbox that answered; empty where there is none */
  judge(answer: Answer, doors: readonly EgressEvent[]): Judged
}

export type Judged = Pick<AssertionResult, 'verdict' | 'observed' | 'evidence'>

/** Where a sandbox with a network has its resolver. */
const resolver = '127.0.0.53'

/** Beyond the limit by that much, so that what is counted otherwise than here does not hide an end. */
const beyond = { processes: 16, bytes: 64 * 1024 * 1024 } as const

/** What could not be tried is an error: nothing holds by that. */
export const untried = (observed: string, evidence: readonly string[] = []): Judged => ({
  verdict: 'error',
  observed,
  evidence,
})

/** The lines of an answer's text, whose every character is a byte of UTF-8. */
export const linesOf = (text: string): readonly string[] =>
  Buffer.from(text, 'latin1')
    .toString()
    .split('\n')
    .filter((line) => line !== '')

/** Returns the question, or null for what speaks of tools, which policy decides. */
export const questionOf = async (
  assertion: Assertion,
  profile: ProfileSettings,
  grants: readonly EgressGrant[],
): Promise<Question | null> => {
  switch (assertion.about) {
    case 'read':
    case 'write':
    case 'exec':
      return reaching([`${assertion.about}-any`, assertion.path], assertion, ({ text }) => linesOf(text))
    case 'connect': {
      const { host, port } = assertion
      const granted = grants.find((grant) => grant.port === port && matchesName(grant.host, host))
      const said = await opening({ host, port, isTls: granted?.tls ?? tlsPorts.has(port) })
      const asks = isIP(host) === 0 ? ['host', resolver, host] : ['say', host]
      return connecting([...asks, String(port), said.toString('hex')], assertion, profile)
    }
    case 'resolve':
      return resolving(assertion)
    case 'env':
      return seeing(assertion.name)
    case 'exceed':
      return exceeding(assertion.limit, profile)
    case 'call':
    case 'ask':
      return null
  }
}

/** Of whoever was in no state to try, or of a machine that was not: it says neither yes nor no to what was tried. */
const saysNothing: ReadonlySet<string> = new Set(
  words(`killed ETIMEDOUT EINTR EAGAIN EIO ESTALE EBADMSG ECONNRESET EPIPE
    ENOMEM ENOBUFS EMFILE ENFILE ENOSPC EDQUOT ETXTBSY`),
)

/** An attempt that is open where it reaches what it names. `told` is what was tried and what came of it, a line each. */
const reaching = (
  asks: readonly string[],
  { isAllowed }: { readonly isAllowed: boolean },
  told: (answer: Answer, doors: readonly EgressEvent[]) => readonly string[],
): Question => ({
  asks,
  isAlone: false,
  judge: (answer, doors) => {
    const { outcome } = answer
    const evidence = told(answer, doors)
    if (saysNothing.has(outcome)) return untried(`it came to nothing: ${outcome}`, evidence)
    return { verdict: verdictOf((outcome === 'open') === isAllowed), observed: outcome, evidence }
  },
})

const resolving = (assertion: Extract<Assertion, { about: 'resolve' }>): Question =>
  reaching(['dns', resolver, '53', assertion.host, '1'], assertion, ({ outcome, text }, doors) => [
    `inside: ${assertion.host} asked of ${resolver}: ${[outcome, ...linesOf(text)].join(', ')}`,
    ...doors.filter(({ host, port }) => host === assertion.host && port === null).map(toldAtDoor),
  ])

const toldAtDoor = ({ kind, address, reason, bytesUp, bytesDown }: EgressEvent): string =>
  `at the door: ${[kind, address, reason].filter((part) => part !== null).join(' ')}, ${bytesUp} bytes up, ${bytesDown} down`

/** The door's no to a name, a port or an address. What ends a connection otherwise, as time does, keeps nobody from the next. */
const isRefused = ({ verdict, reason }: EgressEvent): boolean =>
  verdict === 'refused' &&
  /^(no-door|name-not-listed|port-not-listed|name-invalid|address-refused:.*)$/.test(reason ?? '')

/** What the sandbox itself says to whoever looks a name up there, or goes to an address to which nobody leads. */
const refusedInside: ReadonlySet<string> = new Set(
  words(`ENOENT ENODATA EACCES EPERM
    ECONNREFUSED ENETUNREACH EHOSTUNREACH EADDRNOTAVAIL EAFNOSUPPORT`),
)

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
      `inside: ${host}:${port} dialled: ${[outcome, ...linesOf(text.replace(/, $/, ''))].join(', ')}`,
      ...(own.length === 0 ? [nothingAtDoor(network.mode)] : own.map(toldAtDoor)),
    ]
    const last = own.findLast(({ reason }) => reason !== null)?.reason ?? outcome
    if (isAllowed) {
      const isReached = isOpen && heard
      if (!isReached && /^(connect|dns|hello|head)-timeout$/.test(last))
        return untried(`it came to nothing: ${last}`, evidence)
      const missed = isOpen ? 'answered by the door, not by the host' : outcome
      return { verdict: verdictOf(isReached), observed: isReached ? 'bytes came back' : missed, evidence }
    }
    // Without a door whatever answers is not ours.
    const isReached = dialled.length > 0 || (isOpen && network.mode === 'none')
    if (isReached) return { verdict: 'fail', observed: 'it was dialled', evidence }
    const isHeld = own.length > 0 ? own.every(isRefused) : refusedInside.has(outcome)
    return isHeld
      ? { verdict: 'pass', observed: `not a byte reached it: ${last}`, evidence }
      : untried(`nothing refused it: ${last}`, evidence)
  },
})

const nothingAtDoor = (mode: ProfileSettings['network']['mode']): string =>
  mode === 'none' ? 'there is no door: the sandbox has no network' : 'at the door: nothing came'

/** Values are never part of the evidence: what was seen may be a secret. */
const seeing = (glob: string): Question => ({
  asks: ['environment'],
  isAlone: false,
  judge: ({ outcome, text }) => {
    if (outcome !== 'open') return untried(`the environment could not be read: ${outcome}`)
    if (text.length >= textBytes) return untried('there are more variables than were read')
    const names = variablesIn(text).map(({ name }) => name)
    const seen = names.filter((name) => matchesName(glob, name))
    return {
      verdict: verdictOf(seen.length === 0),
      observed: seen.length === 0 ? 'absent' : `seen: ${seen.join(', ')}`,
      evidence: [`${names.length} variables are there: ${names.toSorted().join(', ') || 'none'}`],
    }
  },
})

type LimitName = Extract<Assertion, { about: 'exceed' }>['limit']

/** How each limit says no. What is stopped by something else has not met it: a machine out of memory kills, too, and says ENOMEM. */
const ends: Readonly<Record<LimitName, readonly string[]>> = {
  memory: ['oom', 'ended'],
  pids: ['EAGAIN', 'ended'],
  files: ['EMFILE'],
  disk: ['ENOSPC', 'EFBIG'],
}

const exceeding = (limit: LimitName, profile: ProfileSettings): Question => ({
  asks: asksBeyond(limit, profile),
  isAlone: limit === 'memory' || limit === 'pids',
  ...(limit === 'memory' && { takesBytes: profile.limits.memoryBytes + beyond.bytes }),
  ...(limit === 'pids' && { isToBeHadOutside: true }),
  judge: ({ outcome, text }) => {
    const [bound, more] = boundOf(limit, profile)
    const unit = { memory: 'bytes', pids: 'processes', files: 'open files', disk: 'bytes in /tmp' }[limit]
    const came = text === '' ? '' : `, ${limit === 'disk' ? 'there are' : 'it had'} ${text}`
    const evidence = [`the limit is ${bound} ${unit}, ${bound + more} were tried: ${outcome}${came}`]
    if (outcome === 'open') return { verdict: 'fail', observed: 'taken in full', evidence }
    if (!ends[limit].includes(outcome))
      return untried(`stopped by ${outcome}, which is not how this limit says no`, evidence)
    if (limit === 'disk' && !isSizedTo(bound, text))
      return untried(
        `stopped by ${outcome}, of something else: its file system is not of this size`,
        evidence,
      )
    return { verdict: 'pass', observed: `stopped: ${outcome}`, evidence }
  },
})

/** Pages are of that size at most, and a file system has whole ones. */
const pageBytes = 65_536

/** Whether the file system by itself has no room for more: one file is stopped by the limit on files, and any by a machine that is full. */
const isSizedTo = (bound: number, sizeBytes: string): boolean =>
  sizeBytes !== '' && Number(sizeBytes) < bound + pageBytes

const asksBeyond = (limit: LimitName, profile: ProfileSettings): readonly string[] => {
  const [bound, more] = boundOf(limit, profile)
  const wanted = String(bound + more)
  return {
    memory: ['touch-memory', wanted],
    pids: ['fork-many', wanted],
    files: ['open-many', wanted],
    disk: ['reserve', '/tmp', wanted],
  }[limit]
}

/** What the limit is, and by how much more is tried. */
const boundOf = (
  limit: LimitName,
  { limits, filesystem }: ProfileSettings,
): readonly [bound: number, more: number] => {
  switch (limit) {
    case 'memory':
      return [limits.memoryBytes, beyond.bytes]
    case 'pids':
      return [limits.pids, beyond.processes]
    case 'files':
      return [limits.openFiles, 1]
    case 'disk':
      return [filesystem.tmpBytes, 1]
  }
}

const verdictOf = (holds: boolean): Verdict => (holds ? 'pass' : 'fail')
