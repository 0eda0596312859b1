// Probes 19, 69, 70, 117, 118 and 120: with what a server starts, and whether any program that it starts has more.
import { isWithin } from '../../lib/path-overlap.ts'
import { finds, stops, stopsOrFinds } from '../attempt.ts'
import { inapplicable, neverTried } from '../gvisor/inapplicable.ts'
import { capableTarget } from '../lab/try.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import type { Probe } from '../probe.ts'

const amiss = (found: readonly string[]): string | null =>
  found.length === 0 ? null : found.slice(0, 5).join(', ')

// SECBIT_NOROOT, NO_SETUID_FIXUP, KEEP_CAPS_LOCKED, NO_CAP_AMBIENT_RAISE, each with its lock.
const locked = 0x1 | 0x2 | 0x4 | 0x8 | 0x20 | 0x40 | 0x80

/** What is amiss with the umask and the blocked signals of a process that has just begun, else null. */
export const otherStart = (text: string): string | null => {
  const of = (name: string): string => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(text)?.[1] ?? '?'
  const [mask, blocked] = [of('Umask'), of('SigBlk')]
  return mask === '0022' && /^0+$/.test(blocked) ? null : `umask ${mask}, blocked ${blocked}`
}

const otherIds = (text: string): string | null =>
  amiss(
    [...text.matchAll(/^([UG]id):((?:\s+\d+)+)$/gm)].flatMap(([, name, numbers = '']) => {
      const ids = new Set(numbers.trim().split(/\s+/))
      return ids.size === 1 ? [] : [`${name} ${[...ids].join(' ')}`]
    }),
  )

const anyCapability = (text: string): string | null =>
  amiss(
    [...text.matchAll(/^(Cap\w+):\s+(0*[1-9a-f][0-9a-f]*)$/gm)].map(([, name, bits]) => `${name} ${bits}`),
  )

const gainedCapability = (text: string): string | null => {
  const [, bits] = /^CapPrm:\s+(0*[1-9a-f][0-9a-f]*)$/m.exec(text) ?? []
  return bits === undefined ? null : `CapPrm ${bits}`
}

/** Where a server may start no program at all, it starts none of these. */
const refused = ({ exec }: SandboxSpec): readonly string[] => (exec === 'none' ? ['EPERM'] : [])

export const privilegeProbes: readonly Probe[] = [
  {
    id: 'capabilities.setuid',
    number: 19,
    group: 'capabilities',
    protects: 'A program with a setuid bit makes a server nobody else.',
    control: 'no-new-privileges',
    trial: ({ spec, setuidPrograms }) => {
      const there = setuidPrograms.filter((path) =>
        spec.mounts.some(({ source, target }) => source === target && isWithin(path, target)),
      )
      const expected = 'the same uid and gid four times'
      return there.length > 0
        ? {
            expected,
            attempts: there.map((path) =>
              stopsOrFinds(['exec-gain', path, '--help'], refused(spec), otherIds),
            ),
          }
        : inapplicable(
            expected,
            'this sandbox has none of the usual programs with a setuid bit',
            'where /usr/bin has one, such as su',
          )
    },
  },
  {
    id: 'capabilities.sets',
    number: 69,
    group: 'capabilities',
    protects: 'A server has no part of root’s power, in none of the five sets.',
    control: 'capabilities',
    trial: () => ({
      expected: 'five empty sets, and setuid to 0 refused',
      attempts: [
        finds(['text', '/proc/self/status'], (text) =>
          amiss(
            [...text.matchAll(/^(Cap\w+):\s+([0-9a-f]+)$/gm)].flatMap(([, name, bits = '']) =>
              /^0+$/.test(bits) ? [] : [`${name} ${bits}`],
            ),
          ),
        ),
        stops(['become-root'], ['EPERM', 'EINVAL']),
        finds(['secure-bits'], (text) => ((Number(text) & locked) === locked ? null : `securebits ${text}`)),
      ],
    }),
  },
  {
    id: 'capabilities.of-files',
    number: 70,
    group: 'capabilities',
    protects: 'A program whose file has capabilities gives a server none.',
    control: 'no-new-privileges',
    trial: ({ capable, incapable }) => {
      const expected = 'five empty sets, or EPERM where the file insists on its own'
      if (capable === null && incapable.isUntried) return neverTried(expected, incapable.because)
      return capable === null
        ? inapplicable(
            expected,
            incapable.because,
            'as root, and where /usr has such a program, as ping often is',
          )
        : {
            expected,
            attempts: [
              stopsOrFinds(
                ['exec-gain', capableTarget, '--help'],
                // execve(2) of a file whose capabilities are effective at once, where the bounding set is empty
                ['EPERM'],
                anyCapability,
                'a file with a capability',
              ),
            ],
            outside: [finds(['exec-gain', capable, '--help'], gainedCapability, 'a file with a capability')],
          }
    },
  },
  {
    id: 'proc.signals-of-pid-1',
    number: 117,
    group: 'proc',
    protects: 'Signals queue in no process that a server does not pay for.',
    control: 'pid-1',
    trial: () => ({
      expected: 'none pending in PID 1',
      attempts: [
        finds(['text', '/proc/1/limits'], (text) => {
          const most = /^Max pending signals\s+(\d+)/m.exec(text)?.[1] ?? 'unknown'
          return most === '0' ? null : `${most} pending signals`
        }),
      ],
    }),
  },
  {
    id: 'proc.start',
    number: 118,
    group: 'proc',
    protects: 'A server starts as any program does: no signal blocked, and its files for others to read.',
    control: 'clean-start',
    trial: () => ({
      expected: 'umask 0022, no signal blocked',
      attempts: [finds(['text', '/proc/self/status'], otherStart)],
      outside: [finds(['changed-status'], otherStart, 'a process that changed its own')],
    }),
  },
  {
    id: 'syscalls.one-program',
    number: 120,
    group: 'syscalls',
    protects: 'Where a profile says so, a server starts no program, its own included.',
    control: 'one-program',
    trial: ({ spec }) =>
      spec.exec === 'none'
        ? {
            expected: 'EPERM',
            attempts: [stops(['exec-any', spec.program.path], ['EPERM'], 'the program itself, again')],
            outside: [stops(['exec-any', '/proc/self/exe'], [], 'the program itself, again')],
          }
        : inapplicable('EPERM', 'the profile lets a server start programs', 'where exec is none'),
  },
]
