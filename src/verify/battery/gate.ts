// Probes 124 to 129: what a launch is refused, what a sandbox is before its gate opens, and what becomes of it when its supervisor is gone.
import { setTimeout as pause } from 'node:timers/promises'
import { join } from 'node:path'
import { credentialFolder, type Mount } from '../../sandbox/spec.ts'
import { finds, refusesLaunch, seen, stops } from '../attempt.ts'
import { alsoMounted } from '../container-removal.ts'
import { givenTarget, swappedTarget } from '../gate-controls.ts'
import type { Lab } from '../lab.ts'
import type { Probe } from '../probe.ts'
import { showing } from '../removal.ts'

/** PID 1 gives a server less than a second by itself; the rest is for a machine that is busy. */
const alongMs = 3000

const secret = join(credentialFolder, 'verify')

const withSecrets =
  (content: string, ...names: readonly string[]) =>
  (lab: Lab): Lab => ({
    ...lab,
    secrets: { environment: {}, files: names.map((name) => ({ name, content: Buffer.from(content) })) },
  })

/** As the plan remembers it: another file was there when it was judged, which no file system numbers so. */
const swappedMount = (source: string): Mount => ({
  source,
  target: swappedTarget,
  access: 'read',
  kind: 'file',
  dev: 0n,
  ino: 0n,
  reason: 'a file that was replaced since',
  origin: 'supervisor',
})

/** A launch of the profile, were it one that lets mounts be written to. */
const withMount =
  (tree: 'own' | 'workspace', access: 'read' | 'write') =>
  (lab: Lab): Lab => {
    const mount = { source: lab.trees[tree], target: givenTarget, access, reason: 'a verification' }
    const { filesystem } = lab.profile
    return {
      ...lab,
      server: { ...lab.server, mounts: [...lab.server.mounts, mount] },
      profile: { ...lab.profile, filesystem: { ...filesystem, mounts: 'write' } },
    }
  }

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
          async ({ abandon, kill, ended }) => {
            const over = ended.then(() => 'gone')
            abandon()
            const outcome = await Promise.race([over, pause(alongMs, 'it goes on')])
            kill()
            return outcome
          },
          (text) => (text === 'gone' ? null : text),
        ),
      ],
      outside: [stops(['refuse-to-end'], [], 'a process of one’s own that is asked to end')],
    }),
  },
  {
    id: 'files.judged',
    number: 125,
    group: 'files',
    protects: 'A folder that is replaced after it was judged and before it is mounted is given to nobody.',
    control: 'mount-identity',
    ...ofTheGate,
    provoke: (plan, { program }) => ({
      ...showing('swapped', [[program, swappedTarget]])(plan),
      spec: { ...plan.spec, mounts: [...plan.spec.mounts, swappedMount(program)] },
    }),
    provokeContainer: (plan, { program }) => ({
      container: alsoMounted(plan, program, swappedTarget).container,
      spec: { ...plan.spec, mounts: [...plan.spec.mounts, swappedMount(program)] },
    }),
    trial: ({ canaries }) => ({
      expected: 'refused at the gate',
      attempts: [
        refusesLaunch(['read', swappedTarget], /that was judged/, 'a mount that is another file now'),
      ],
      outside: [stops(['read', join(canaries.folder, 'canary')], [], 'a file that is there')],
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
    within: withMount('own', 'read'),
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
  {
    id: 'files.protected',
    number: 129,
    group: 'files',
    protects:
      'What makes the host run something, such as a hook of git, is not changed in a folder that may be written.',
    control: 'protected-names',
    isAlone: true,
    within: withMount('workspace', 'write'),
    trial: ({ canaries }) => ({
      expected: 'EROFS, beside what may be written',
      attempts: [
        finds(['create', join(givenTarget, 'x')], () => null, 'a file of a project'),
        stops(['create', join(givenTarget, '.git', 'x')], ['EROFS'], 'a file of its .git'),
      ],
      outside: [stops(['create', join(canaries.workspace, '.git', 'y')], [], 'a file of its .git')],
    }),
  },
]
