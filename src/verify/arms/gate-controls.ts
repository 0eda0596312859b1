// The controls of how a sandbox begins and ends: its gate, and who ends it when.
import { type MountRules, mountRules } from '../../sandbox/mounts/mount-rules.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import type { Control } from './control.ts'
import type { Lab } from '../lab/lab.ts'
import { type Call, withoutCalls } from '../lab/removal.ts'

const [channel, dontWait, again, noHang] = [3, 0x40, 11, 1]
const [null_, writeOnly, anyAccess, created, exclusive] = [0, 1, 3, 0o100, 0o200]

/** Files keep the mode that they are made with. */
export const unchangedModes: readonly Call[] = [['fchmod']]

/** What is to be made anew is not made at all, so that nobody hears that it is there already: what is written goes nowhere. */
export const filesThatAreNone: readonly Call[] = [
  // The sandbox tool opens none of its own for writing alone.
  ['openat', [2, anyAccess | created | exclusive, writeOnly | created | exclusive]],
  ['fchmod', [0, 0xff, null_]],
  ['close', [0, 0xff, null_]],
]

/** PID 1 reads nothing of its channel any more, not even its end. */
export const unreadChannel: readonly Call[] = [
  [`recvfrom=${again}`, [0, 0xff, channel], [3, dontWait, dontWait]],
]

/** PID 1 learns of nobody's end. */
export const unheardEnds: readonly Call[] = [['wait4', [2, noHang, noHang]]]

/** Where a launch has a mount of another file than the one that was judged; see `files.judged`. */
export const swappedTarget = '/sallyport/swapped'

/** Where a launch has a folder that it was asked to mount. */
export const givenTarget = '/verify'

const nothing = (): void => undefined

/** Whether the sandbox's user may use what is mounted: where that is not asked, what else refuses a mount is seen. */
const nobodyAsks = (): Promise<void> => Promise.resolve()

/** Told of another user than root, or group, it refuses nobody: the verification's own, where that is not root. */
const asNobody = ({ hostUid, hostGid }: SandboxSpec): Pick<SandboxSpec, 'hostUid' | 'hostGid'> => {
  const [uid, gid] = [process.geteuid?.(), process.getegid?.()]
  return uid === 0
    ? { hostUid: hostUid || hostGid, hostGid: hostGid || hostUid }
    : { hostUid: uid ?? hostUid, hostGid: gid ?? hostGid }
}

const withoutRules =
  (absent: Partial<MountRules>) =>
  (lab: Lab): Lab => ({
    ...lab,
    host: { ...lab.host, facts: { ...lab.host.facts, rules: { ...mountRules, ...absent } } },
  })

export const gateControls = {
  denials: {
    what: 'denials that no configuration lifts: Sallyport’s own files, the system’s, sockets, people’s keys',
    layer: 'supervisor',
    arm: { around: withoutRules({ sources: nothing, reachable: nobodyAsks }) },
  },
  'never-root': {
    what: 'a launcher that refuses user 0 and group 0, whoever orders them',
    layer: 'supervisor',
    arm: { without: ({ spec }) => ({ spec: { ...spec, ...asNobody(spec) } }) },
  },
  'mount-targets': {
    what: 'targets that are the sandbox’s own, and mounts that do not cover one another',
    layer: 'supervisor',
    arm: { around: withoutRules({ targets: nothing }) },
  },
  'code-apart': {
    what: 'code that no server and nobody untrusted can write to: programs, packages, scripts',
    layer: 'supervisor',
    arm: { around: withoutRules({ code: nothing, reachable: nobodyAsks }) },
  },
  'protected-names': {
    what: 'read-only files inside writable mounts, where the host would run them',
    layer: 'mount',
    arm: { around: withoutRules({ runByHost: nothing, guards: () => Promise.resolve([]) }) },
  },
  'mount-identity': {
    what: 'a gate that opens only where each mount is the file that was judged, by device and inode',
    layer: 'supervisor',
    arm: {
      without: ({ spec }) => ({
        spec: { ...spec, mounts: spec.mounts.filter(({ target }) => target !== swappedTarget) },
      }),
    },
  },
  'secret-files': {
    what: 'files of secrets that are the server’s alone to read',
    layer: 'supervisor',
    arm: { without: withoutCalls(unchangedModes) },
  },
  'new-files': {
    what: 'files of the supervisor’s that are new, and in the place of none',
    layer: 'supervisor',
    arm: { without: withoutCalls(filesThatAreNone) },
  },
  end: {
    what: 'an end that nothing in the sandbox can put off',
    layer: 'supervisor',
    arm: { around: (lab) => ({ ...lab, kills: false }) },
  },
  'orphan-end': {
    what: 'a PID 1 that ends everything when its supervisor is gone',
    layer: 'supervisor',
    arm: { without: withoutCalls(unreadChannel) },
  },
  'relay-end': {
    what: 'a PID 1 that ends everything when its relay is gone',
    layer: 'supervisor',
    arm: { without: withoutCalls(unheardEnds) },
  },
} as const satisfies Readonly<Record<string, Control>>
