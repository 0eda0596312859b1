// Probes 119, 123 and 133: the relay beside a server has no rights, and a server does not go on without it.
import type { SandboxExit } from '../../sandbox/driver.ts'
import { type Attempt, comes, finds, seen, stops } from '../attempt.ts'
import { inapplicable, networkUnknown, neverTried, withoutNetworkThereIs } from '../gvisor/inapplicable.ts'
import type { Probe } from '../probe.ts'
import { ask, nobodyThere, types } from './asking.ts'

/** Addresses and ports that a relay may listen on, the two ends of each of its connections, and some of its own. */
const mostDescriptors = 2048 + 2 * 256 + 64

/** The process that PID 1 starts before the server. */
const relayPid = '{relay}'

/** Without a relay it is PID 1 that was started before; one that there is has its name when it answers. */
const noRelay: readonly Attempt[] = [
  ask('not-granted.sallyport.test', types.A, nobodyThere),
  finds(
    ['text', `/proc/${relayPid}/comm`],
    (text) => (text.trim() === 'egress' ? 'a relay' : null),
    'what was started before the server',
  ),
]

/** What is amiss with the limits of a process that starts nothing, writes nothing and opens what it needs, else null. */
const otherLimits = (text: string): string | null => {
  const most = (name: string): readonly string[] =>
    new RegExp(`^${name}\\s+(\\S+)\\s+(\\S+)`, 'm').exec(text)?.slice(1) ?? ['?', '?']
  const none = ['Max processes', 'Max core file size', 'Max file size', 'Max locked memory'].map(most)
  const files = most('Max open files')
  const isNone = none.every(([soft, hard]) => soft === '0' && hard === '0')
  const isFew = files[0] === files[1] && Number(files[1]) <= mostDescriptors
  return isNone && isFew ? null : [...none, files].map((both) => both.join('/')).join(' ')
}

/** It is of the server's own user, who may end or stop it. */
const ends = (
  how: 'killed' | 'stopped',
  by: 'SIGKILL' | 'SIGSTOP',
  which: Pick<Probe, 'id' | 'number' | 'protects'>,
): Probe => ({
  ...which,
  group: 'network',
  control: 'relay-end',
  isAlone: true,
  trial({ spec }) {
    const expected = `ended by PID 1 as soon as the relay is ${how}`
    if (spec.network.mode === 'none')
      return withoutNetworkThereIs(expected, 'there is no relay that could end')
    return {
      expected,
      attempts: [
        seen(
          `the relay, ${how} from outside`,
          async (program) => {
            const { endRelay, kill, ended } = program
            await endRelay(by)
            const exit = await comes(ended, program, 'the sandbox goes on').finally(kill)
            return (exit as SandboxExit).reason
          },
          (text) => (text === 'egress-lost' ? null : text),
        ),
      ],
      outside: [stops(['refuse-to-end'], [], 'a process of one’s own that is asked to end')],
    }
  },
})

export const relayProbes: readonly Probe[] = [
  {
    id: 'network.relay',
    number: 119,
    group: 'network',
    protects: 'The relay beside a server has no right, starts nothing, and is not to be read into.',
    control: 'relay-rights',
    trial({ spec, canConnect }) {
      const isShut = spec.network.mode === 'none'
      if (isShut && canConnect === 'unknown') return neverTried('no relay', networkUnknown)
      if (isShut)
        return canConnect === true
          ? { expected: 'no relay', attempts: noRelay, outside: [], note: 'the profile has no network' }
          : inapplicable(
              'no relay',
              'this machine can start none',
              'where it can: see sallyport doctor',
              noRelay,
            )
      return {
        expected: 'no capability, a filter, no processes of its own, few open files, and EACCES',
        attempts: [
          finds(['text', `/proc/${relayPid}/status`], (text) => {
            const of = (name: string): string => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(text)?.[1] ?? '?'
            const found = ['Name', 'CapPrm', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp'].map(of)
            return /^egress,0+,0+,0+,1,2$/.test(found.join()) ? null : found.join(' ')
          }),
          finds(['text', `/proc/${relayPid}/limits`], otherLimits),
          ...['mem', 'fd/0', 'environ'].map((name) =>
            stops(['read', `/proc/${relayPid}/${name}`], ['EACCES', 'EPERM']),
          ),
        ],
        outside: [finds(['text', '/proc/{main}/limits'], otherLimits)],
      }
    },
  },
  ends('killed', 'SIGKILL', {
    id: 'network.relay-end',
    number: 123,
    protects: 'A server does not go on beside a relay that is gone: its network would be another one.',
  }),
  ends('stopped', 'SIGSTOP', {
    id: 'network.relay-stop',
    number: 133,
    protects: 'A server does not stop its relay and go on: nobody would hear of what it is refused.',
  }),
]
