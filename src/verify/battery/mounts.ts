// Probes 8 to 10: what the table of mounts says of the sandbox, and of the host.
import { isWithin } from '../../lib/path-overlap.ts'
import { type Attempt, finds } from '../attempt.ts'
import type { Probe, Scene, Trial } from '../probe.ts'

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '')

interface MountLine {
  readonly target: string
  readonly options: readonly string[]
}

/** The mounts that a path can lead to: not those with another one on top of all that they are. */
const mountsIn = (text: string): readonly MountLine[] => {
  const all = lines(text).map((line) => line.split(' '))
  const covered = new Set(all.map(([, parent, , , target]) => `${parent} ${target}`))
  return all
    .filter(([id, , , , target]) => !covered.has(`${id} ${target}`))
    .map(([, , , , target = '', options = '']) => ({ target, options: options.split(',') }))
}

const named = (what: string, targets: readonly string[]): string | null =>
  targets.length === 0 ? null : `${what}: ${targets.slice(0, 5).join(' ')}`

/**
 * Mounts that an engine makes as it will: its root, its covers, and what is mounted of this machine. Setuid bits and nodes there are
 * held by no_new_privs, a user namespace with one uid, and the engine's list of devices, which have probes of their own.
 */
const isEnginesOwn = ({ driver, spec }: Scene, target: string): boolean =>
  driver === 'docker' &&
  (target === '/' ||
    /^\/(proc|sys|dev|etc|sallyport)(\/|$)/.test(target) ||
    spec.mounts.some((mount) => mount.target === target))

const noteOf = ({ driver }: Scene): Pick<Trial, 'note'> =>
  driver === 'docker'
    ? { note: 'of scratch space; an engine mounts what is this machine’s, and its own covers, without' }
    : {}

/** Where the sandbox has what is its own, and what programs of the runtime start with. */
const ownPlaces =
  '/proc /dev /tmp /home/user /sallyport /bin /sbin /lib /lib32 /lib64 /libx32 /etc/ld.so.cache'.split(' ')
const ownScratch = ['/proc', '/dev', '/tmp', '/home/user', '/sallyport'] as const

/** By the words of profile and server, whatever a plan made of them. */
const asked = ({ asked }: Scene): Attempt =>
  finds(
    ['text', '/proc/self/mountinfo'],
    (text) => {
      const isAt = (target: string, places: readonly string[]): boolean =>
        places.some((place) => isWithin(target, place))
      const places = [...ownPlaces, ...asked.map(({ target }) => target)]
      const writable = [
        ...ownScratch,
        ...asked.flatMap(({ target, access }) => (access === 'write' ? [target] : [])),
      ]
      const there = mountsIn(text).filter(({ target }) => target !== '/')
      return (
        named(
          'nobody asked for',
          there.flatMap(({ target }) => (isAt(target, places) ? [] : [target])),
        ) ??
        named(
          'nobody asked to write to',
          there.flatMap(({ target, options }) =>
            options.includes('ro') || isAt(target, writable) ? [] : [target],
          ),
        )
      )
    },
    'mounts beyond what was asked for',
  )

export const mountProbes: readonly Probe[] = [
  {
    id: 'files.nosuid',
    number: 8,
    group: 'files',
    protects: 'No file makes a server another user by its setuid bit.',
    control: 'nosuid',
    trial: (scene) => ({
      expected: 'nosuid on every mount',
      attempts: [
        finds(['text', '/proc/self/mountinfo'], (text) =>
          named(
            'without nosuid',
            mountsIn(text).flatMap(({ target, options }) =>
              options.includes('nosuid') || isEnginesOwn(scene, target) ? [] : [target],
            ),
          ),
        ),
      ],
      ...noteOf(scene),
    }),
  },
  {
    id: 'files.nodev',
    number: 9,
    group: 'files',
    protects: 'No file opens a device of the host.',
    control: 'nodev',
    trial: (scene) => ({
      expected: 'nodev on every mount but five nodes',
      attempts: [
        finds(['text', '/proc/self/mountinfo'], (text) =>
          named(
            'without nodev',
            mountsIn(text).flatMap(({ target, options }) =>
              options.includes('nodev') ||
              /^\/dev\/(null|zero|full|random|urandom)$/.test(target) ||
              isEnginesOwn(scene, target)
                ? []
                : [target],
            ),
          ),
        ),
      ],
      ...noteOf(scene),
    }),
  },
  {
    id: 'files.mount-table',
    number: 10,
    group: 'files',
    protects:
      'The table of mounts names nothing of the host but what something is mounted from, which the kernel always names.',
    control: 'mount-plan',
    trial: (scene) => ({
      expected: 'no folder that was not mounted is named, and nothing is mounted that nobody asked for',
      attempts: [
        ...(scene.driver === 'docker' ? [] : [asked(scene)]),
        finds(['text', '/proc/self/mountinfo'], (text) =>
          text.includes(scene.canaries.home) || text.includes(scene.canaries.word)
            ? 'a folder of the host that no plan has is named'
            : null,
        ),
      ],
      outside: [
        finds(['text', '/proc/self/mountinfo'], (text) =>
          named(
            'host mounts',
            mountsIn(text)
              .map(({ target }) => target)
              .filter((target) => /^\/(sys|run|boot|var)/.test(target)),
          ),
        ),
      ],
    }),
  },
]
