// Probes 64 and 65: calls by the numbers of other tables than the kernel's own, which the filter would take for others.
import { stops } from '../attempt.ts'
import { inapplicable } from '../gvisor/inapplicable.ts'
import { arch } from '../lab/removal.ts'
import type { Probe, Trial } from '../probe.ts'

const [i386, x32] = [['foreign-architecture'], ['foreign-numbers']] as const

export const foreignCallProbes: readonly Probe[] = [
  {
    id: 'syscalls.x32',
    number: 64,
    group: 'syscalls',
    protects: 'A call under its x32 number, which the filter’s numbers do not mean, ends the caller.',
    control: 'seccomp',
    trial({ foreign }): Trial {
      if (arch !== 'x64') return inapplicable('killed', 'arm64 has no x32', 'on x64')
      const attempts = [stops(x32, ['killed'])]
      // Few kernels have x32: of those that do not, calls of i386 show that there is another table at all.
      if (foreign.i386)
        return { expected: 'killed', attempts, outside: [stops(i386, [], 'another table of calls')] }
      if (foreign.x32) return { expected: 'killed', attempts }
      return inapplicable('killed', 'this kernel has calls of no other table', 'where one has', attempts)
    },
  },
  {
    id: 'syscalls.i386',
    number: 65,
    group: 'syscalls',
    protects: 'A call of the 32-bit architecture, which the filter’s numbers do not mean, ends the caller.',
    control: 'seccomp',
    trial({ foreign }): Trial {
      if (arch !== 'x64') return inapplicable('killed', 'arm64 has no i386', 'on x64')
      return foreign.i386
        ? { expected: 'killed', attempts: [stops(i386, ['killed'])] }
        : inapplicable('ENOSYS', 'this kernel has no calls of i386', 'where one has', [
            stops(i386, ['ENOSYS']),
          ])
    },
  },
]
