// The guarantees that reports speak of, one for each group of probes: their order, their words, the profile's key behind them.
import type {
  AssertionResult,
  Inspection,
  ProbeGroup,
  ProbeResult,
  Verdict,
  Verification,
} from '../result.ts'

export interface Guarantee {
  readonly group: ProbeGroup
  /** Heading of a column */
  readonly title: string
  /** What a server cannot do, one sentence */
  readonly promise: string
  /** Key of `decidedAt` whose line a failure points at */
  readonly key: string
}

/** Every group once, in the order of every report. */
export const guarantees: readonly Guarantee[] = [
  {
    group: 'files',
    title: 'Files',
    promise: 'Only granted files exist, and only granted ones can be written.',
    key: 'filesystem.read',
  },
  {
    group: 'environment',
    title: 'Environment',
    promise: 'Only listed variables are there.',
    key: 'environment.pass',
  },
  {
    group: 'network',
    title: 'Network',
    promise: 'Only listed names resolve, and only listed hosts answer.',
    key: 'network.mode',
  },
  {
    group: 'proc',
    title: 'Processes',
    promise: 'No process of the host or of another sandbox is seen or touched.',
    key: 'name',
  },
  {
    group: 'descriptors',
    title: 'Descriptors',
    promise: 'Nothing is open but the three streams.',
    key: 'name',
  },
  {
    group: 'ipc',
    title: 'IPC',
    promise: 'No socket, queue, key or memory is shared with the host.',
    key: 'name',
  },
  {
    group: 'devices',
    title: 'Devices',
    promise: 'No device but the harmless few is there.',
    key: 'filesystem.read',
  },
  {
    group: 'terminal',
    title: 'Terminal',
    promise: 'No terminal can be typed into.',
    key: 'name',
  },
  {
    group: 'namespaces',
    title: 'Namespaces',
    promise: 'No namespace can be made, entered or left.',
    key: 'syscalls.base',
  },
  {
    group: 'capabilities',
    title: 'Capabilities',
    promise: 'No privilege is held, and none can be gained.',
    key: 'syscalls.base',
  },
  {
    group: 'syscalls',
    title: 'System calls',
    promise: 'What is not needed is refused by the filter.',
    key: 'syscalls.base',
  },
  {
    group: 'resources',
    title: 'Resources',
    promise: 'Memory, processes, files and disk end where the profile says.',
    key: 'limits.memory_bytes',
  },
  {
    group: 'time',
    title: 'Time',
    promise: 'The clocks of the machine cannot be set.',
    key: 'syscalls.base',
  },
]

/** What was seen of a real server and its processes. */
export const serverTitle = 'Server'

/** What a profile's file and a test file state of their own. */
export const assertionsTitle = 'Assertions'

/** Probes of a group with its guarantee; groups without a probe are left out. */
export const byGuarantee = ({
  probes,
}: Verification): readonly { readonly guarantee: Guarantee; readonly probes: readonly ProbeResult[] }[] =>
  guarantees
    .map((guarantee) => ({ guarantee, probes: probes.filter(({ group }) => group === guarantee.group) }))
    .filter((each) => each.probes.length > 0)

export interface Count {
  readonly all: number
  readonly passed: number
  readonly failed: number
  readonly errors: number
  readonly notApplicable: number
  readonly notEnforced: number
  /** All but what does not apply: what could have been held */
  readonly applicable: number
}

export const countOf = (results: readonly { readonly verdict: Verdict }[]): Count => {
  const of = (verdict: Verdict): number => results.filter((each) => each.verdict === verdict).length
  const notApplicable = of('not-applicable')
  return {
    all: results.length,
    passed: of('pass'),
    failed: of('fail'),
    errors: of('error'),
    notApplicable,
    notEnforced: of('not-enforced'),
    applicable: results.length - notApplicable,
  }
}

/** Whether somebody has to look at it: neither what holds nor what does not apply. */
export const needsEyes = ({ verdict }: { readonly verdict: Verdict }): boolean =>
  verdict !== 'pass' && verdict !== 'not-applicable'

/** Why something that is no failure was not held, in one line; null for everything else. */
export const whyNot = (result: ProbeResult | Inspection | AssertionResult): string | null => {
  const why = 'detail' in result ? (result.detail ?? result.observed) : result.observed
  if (result.verdict === 'not-applicable') return `does not apply: ${why}`
  return result.verdict === 'not-enforced' ? `not enforced: ${why}; observed ${result.observed}` : null
}

/** Everything of a verification that has a verdict, for counting. */
export const allOf = ({
  probes,
  inspections,
  assertions,
}: Verification): readonly (ProbeResult | Inspection | AssertionResult)[] => [
  ...probes,
  ...inspections,
  ...assertions,
]

/** What a probe says of itself beside its verdict, one fact a line. */
export const factsOf = (probe: ProbeResult): readonly string[] => [
  `expected: ${probe.expected}`,
  `observed: ${probe.observed}${probe.errno === null || probe.observed.includes(probe.errno) ? '' : ` (${probe.errno})`}`,
  ...(probe.layer === null ? [] : [`stopped by: ${probe.layer}`]),
  `control: ${probe.control}`,
  ...(probe.detail === null ? [] : [`why: ${probe.detail}`]),
  ...(probe.positiveControl === null
    ? []
    : [
        `outside: ${probe.positiveControl.observed} (${probe.positiveControl.isOpen ? 'open, as it must be' : 'NOT open'})`,
      ]),
  ...(probe.brokenArm === null
    ? []
    : [
        `without ${probe.brokenArm.control}: ${probe.brokenArm.observed} (${probe.brokenArm.isRed ? 'red, as it must be' : 'STAYED GREEN'})`,
      ]),
  ...probe.evidence.map((line) => `evidence: ${line}`),
]

/** The same for what was seen of a server. */
export const inspectionFacts = ({ expected, observed, evidence }: Inspection): readonly string[] => [
  `expected: ${expected}`,
  `observed: ${observed}`,
  ...evidence.map((each) => `evidence: ${each}`),
]

/** The same for an assertion. */
export const assertionFacts = ({
  reason,
  observed,
  file,
  line,
  evidence,
}: AssertionResult): readonly string[] => [
  `reason: ${reason}`,
  `observed: ${observed}`,
  `stated at: ${file}:${line}`,
  ...evidence.map((each) => `evidence: ${each}`),
]

/** That it was tried before, and why once more, a line for each such try. */
export const earlierTries = ({ earlier }: Pick<Verification, 'earlier'>): readonly string[] =>
  earlier.map((lacking) => `tried once more, since at first not all was shown: ${lacking}`)

/** What was verified, in a few words: a profile, or a server under one. */
export const subjectOf = ({ profile, server }: Verification): string =>
  server === null ? profile : `${server} (${profile})`

/** What made the sandbox, in a word or two: the driver, and the runtime where the engine was asked for one. */
export const madeBy = ({ driver, runtime }: Pick<Verification, 'driver' | 'runtime'>): string =>
  runtime === null ? driver : `${driver} ${runtime}`
