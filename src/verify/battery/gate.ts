// Probes 124, 126 to 129, 149 and 150: what a launch is refused, what a sandbox is before its gate opens, and what becomes of it when its supervisor is gone.
import { join } from 'node:path'
import { credentialFolder } from '../../sandbox/spec.ts'
import { comes, finds, refusesLaunch, seen, stops } from '../attempt.ts'
import { givenTarget } from '../arms/gate-controls.ts'
import type { Lab } from '../lab/lab.ts'
import { inapplicable } from '../gvisor/inapplicable.ts'
import { nested } from '../lab/people.ts'
import type { Probe } from '../probe.ts'
import { mounting } from '../arms/wanted.ts'

const secret = join(credentialFolder, 'verify')

const withSecrets =
  (content: string, ...names: readonly string[]) =>
  (lab: Lab): Lab => ({
    ...lab,
    secrets: { environment: {}, files: names.map((name) => ({ name, content: Buffer.from(content) })) },
  })

const ofTheGate: { readonly isAlone: true; readonly endsBy: 'refused' } = { isAlone: true, endsBy: 'refused' }

export const gateProbes: readonly Probe[] = [
  {
    id: 'resources.abandoned',
    number: 124,
    group: 'resources',
    protects: 'A server does not outlive a daemon that was killed: nobody would judge its calls, or end it.',
    control: 'orphan-end',
    isAlone: true,
    trial: () => ({
      expected: 'ended by PID 1, though it refuses every end',
      attempts: [
        finds(['stay'], () => null, 'refusing every end'),
        seen(
          'left by its supervisor',
          async (program) => {
            const { abandon, kill, ended } = program
            abandon()
            await comes(ended, program, 'it goes on').finally(kill)
            return 'gone'
          },
          (text) => (text === 'gone' ? null : text),
        ),
      ],
      outside: [stops(['refuse-to-end'], [], 'a process of one’s own that is asked to end')],
    }),
  },
  {
    id: 'files.secrets',
    number: 126,
    group: 'files',
    protects: 'A secret in a file is read by the server that it is for, and changed by nobody.',
    control: 'secret-files',
    isAlone: true,
    within: withSecrets('x', 'verify'),
    trial: () => ({
      expected: 'mode 400, in a folder of mode 700',
      attempts: [
        finds(['mode', secret], (text) => (text === '400' ? null : `mode ${text}`)),
        finds(['mode', credentialFolder], (text) => (text === '700' ? null : `mode ${text}`)),
        finds(['read', secret], () => null),
      ],
      outside: [finds(['mode', '/tmp'], (text) => (text === '400' ? null : `mode ${text}`))],
    }),
  },
  {
    id: 'files.written-anew',
    number: 127,
    group: 'files',
    protects:
      'What the supervisor writes goes into a file of its own, never into one that is there or that a link names.',
    control: 'new-files',
    ...ofTheGate,
    within: withSecrets('', 'verify', 'verify'),
    trial: () => ({
      expected: 'refused at the gate',
      attempts: [refusesLaunch(['read', secret], /file already exists/, 'a file where one is already')],
      outside: [stops(['create', '/tmp/sallyport-verify-created'], [], 'a file where none is')],
    }),
  },
  {
    id: 'files.denied',
    number: 128,
    group: 'files',
    protects: 'What no server may have is mounted for none, whatever its entry says.',
    control: 'denials',
    ...ofTheGate,
    within: mounting(({ own }) => ({ source: own })),
    trial: ({ canaries }) => ({
      expected: 'refused before anything is built',
      attempts: [
        refusesLaunch(
          ['read', join(givenTarget, 'canary')],
          /which no configuration grants/,
          'a mount of a folder of Sallyport’s own',
        ),
      ],
      outside: [stops(['read', join(canaries.own, 'canary')], [], 'a folder of Sallyport’s own')],
    }),
  },
  ...(['user', 'group'] as const).map((which, index): Probe => {
    const expected = 'refused by the launcher'
    return {
      id: `capabilities.root-${which}`,
      number: 149 + index,
      group: 'capabilities',
      protects: `A launcher that is told to start a sandbox as root’s ${which} starts none.`,
      control: 'never-root',
      ...ofTheGate,
      provoke: ({ spec }) => ({ spec: { ...spec, ...(which === 'user' ? { hostUid: 0 } : { hostGid: 0 }) } }),
      trial: ({ driver }) =>
        driver === 'docker'
          ? inapplicable(
              expected,
              'an engine is told the user, and 37 looks at whom it took',
              'under bubblewrap',
            )
          : {
              expected,
              attempts: [
                refusesLaunch(['session'], /a sandbox never runs as root/, `a launch as root’s ${which}`),
              ],
              outside: [stops(['session'], [], 'a program that nobody launches')],
            },
    }
  }),
  {
    id: 'files.protected',
    number: 129,
    group: 'files',
    protects:
      'What makes the host run something, such as a hook of git, is not changed in a folder that may be written.',
    control: 'protected-names',
    isAlone: true,
    // Outside, and without the control, the project is changed by it.
    isApart: true,
    within: mounting(({ workspace }) => ({ source: workspace, access: 'write' })),
    trial: ({ canaries: { workspace } }) => ({
      expected: 'EROFS and EBUSY, beside what may be written',
      attempts: [
        finds(['create', join(givenTarget, 'x')], () => null, 'a file of a project'),
        ...changes(givenTarget).map(([asks, label]) => stops(asks, ['EROFS', 'EBUSY'], label)),
      ],
      outside: changes(workspace).map(([asks, label]) => stops(asks, [], label)),
    }),
  },
]

/** What would change what the host runs: in the folder itself, below others, behind a link, and by putting a folder out of the way. */
const changes = (root: string): readonly (readonly [asks: readonly string[], label: string])[] => {
  const at = (...names: readonly string[]): string => join(root, ...names)
  const away = (path: string): readonly string[] => ['rename', path, `${path}-away`]
  return [
    [['create', at('.git', 'x')], 'a file of its .git'],
    [['open-for-writing', at('.git', 'config')], 'a file that is in its .git'],
    [['open-for-writing', at(...nested, '.git', 'config')], 'a repository below'],
    [['open-for-writing', at('settings', 'agent.json')], 'what a protected name is a link to'],
    [away(at('.git')), 'its .git, put away'],
    ...nested.map((_, depth): readonly [readonly string[], string] => [
      away(at(...nested.slice(0, depth + 1))),
      `a folder above a repository, put away: ${nested.slice(0, depth + 1).join('/')}`,
    ]),
    [away(at('settings')), 'the folder of what a protected name is a link to, put away'],
  ]
}
