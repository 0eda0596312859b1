// Verifications for reports to be made of, with text in them that would break a careless format.
import { expect } from 'vitest'
import type { AssertionResult, Inspection, ProbeResult, Verification } from '../../src/verify/result.ts'
import type { Report } from '../../src/verify/report/format.ts'

/** The verdict of a verification that found nothing to mend: where nothing holds a limit, that is no failure by itself. */
export const green: unknown = expect.stringMatching(/^(pass|not-enforced)$/)

/** Whether a single result is none that anybody has to mend. */
export const isSound = (verdict: string): boolean =>
  ['pass', 'not-enforced', 'not-applicable'].includes(verdict)

/** Markup, a TAP directive, a CDATA end, an escape sequence and a character that XML cannot hold. */
export const hostile = `<script>alert("1")</script> & ]]> # SKIP 'it' \\ \u001b[31mred\u0000\ufffe\nnot ok 1 - injected`

export const probe = (more: Partial<ProbeResult> = {}): ProbeResult => ({
  id: 'files.shadow',
  number: 1,
  group: 'files',
  protects: 'The passwords of the machine cannot be read.',
  control: 'mount-plan',
  expected: 'ENOENT',
  observed: 'ENOENT',
  errno: 'ENOENT',
  layer: 'mount',
  verdict: 'pass',
  detail: null,
  evidence: ['open /etc/shadow: ENOENT'],
  positiveControl: { observed: 'EACCES', isOpen: true },
  brokenArm: null,
  durationMs: 1.25,
  ...more,
})

export const assertion = (more: Partial<AssertionResult> = {}): AssertionResult => ({
  text: 'cannot read /etc/shadow',
  reason: 'passwords',
  file: '/repo/profiles/mine.yaml',
  line: 12,
  verdict: 'pass',
  observed: 'absent',
  evidence: [],
  ...more,
})

export const inspection = (more: Partial<Inspection> = {}): Inspection => ({
  id: 'process.capabilities',
  protects: 'No process of the server holds a capability.',
  expected: 'all five sets empty',
  observed: 'all five sets empty',
  verdict: 'pass',
  evidence: ['pid 12 node: CapEff 0'],
  ...more,
})

export const verification = (more: Partial<Verification> = {}): Verification => ({
  profile: 'offline',
  server: null,
  driver: 'bubblewrap',
  runtime: null,
  host: { kernel: '6.12.0', arch: 'x64', uid: 1000, tool: '0.11.0' },
  startedAt: '2026-01-02T03:04:05.678Z',
  durationMs: 4321,
  earlier: [],
  probes: [probe()],
  inspections: [],
  assertions: [assertion()],
  enforcedBy: { memory: 'cgroup-v2', pids: 'cgroup-v2', cpu: 'cgroup-v2', files: 'rlimit', tmp: 'tmpfs' },
  verdict: 'pass',
  ...more,
})

/** One that has everything: a pass, a failure and an error, each of a probe and of an assertion, in hostile words. */
export const mixed = (): Verification =>
  verification({
    profile: 'mine',
    server: hostile,
    probes: [
      probe(),
      probe({
        id: 'network.loopback',
        number: 2,
        group: 'network',
        verdict: 'fail',
        errno: null,
        layer: null,
        protects: hostile,
        observed: hostile,
        detail: hostile,
        evidence: [hostile],
      }),
      probe({
        id: 'syscalls.bpf',
        number: 3,
        group: 'syscalls',
        verdict: 'error',
        positiveControl: { observed: 'EPERM', isOpen: false },
        brokenArm: { control: 'seccomp', observed: 'EPERM', isRed: false },
      }),
    ],
    inspections: [
      inspection(),
      inspection({
        id: 'process.environment',
        verdict: 'fail',
        protects: hostile,
        observed: hostile,
        evidence: [hostile],
      }),
      inspection({ id: 'server.call', verdict: 'error', observed: 'nothing was called' }),
    ],
    assertions: [
      assertion(),
      assertion({ text: hostile, reason: hostile, verdict: 'fail', observed: hostile, evidence: [hostile] }),
      assertion({ text: 'cannot exceed memory', verdict: 'error', observed: 'could not be tried' }),
    ],
    earlier: [hostile],
    verdict: 'error',
  })

/** One that holds as far as it can: something that does not apply, and something that nothing on the machine holds. */
export const partly = (): Verification =>
  verification({
    probes: [
      probe(),
      probe({
        id: 'network.relay-end',
        number: 123,
        group: 'network',
        observed: 'nothing of the kind',
        errno: null,
        layer: null,
        verdict: 'not-applicable',
        detail: 'the profile has no network; it applies where it has # one',
        evidence: [],
        positiveControl: null,
      }),
      probe({
        id: 'resources.cpu',
        number: 102,
        group: 'resources',
        observed: 'computing: 1.97 of 1 processors',
        errno: null,
        layer: null,
        verdict: 'not-enforced',
        detail: 'nothing here holds limits.cpu',
        evidence: ['computing: 1.97 of 1 processors'],
        positiveControl: null,
      }),
    ],
    inspections: [
      inspection({ id: 'process.cgroup', verdict: 'not-applicable', observed: 'no group', evidence: [] }),
    ],
    verdict: 'not-enforced',
  })

export const reportOf = (...all: readonly Verification[]): Report => ({
  version: '1.2.3',
  folder: '/repo',
  unusable: [],
  reported: all.map((each) => ({
    verification: each,
    placeOf: (key) =>
      key === 'server'
        ? { path: '/repo/sallyport.yaml', line: 21 }
        : key === 'network.mode'
          ? { path: '/repo/profiles/mine.yaml', line: 7 }
          : { path: '/usr/share/sallyport/profiles/offline.yaml', line: 6 },
  })),
})
