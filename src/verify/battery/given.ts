// Probes 86 to 90: what a server was given at its start: variables and descriptors.
import { finds, stops, variablesIn } from '../attempt.ts'
import type { Probe } from '../probe.ts'

const words = (text: string): string[] => text.split('\n').filter((line) => line !== '')
const amiss = (found: readonly string[]): string | null =>
  found.length === 0 ? null : found.slice(0, 5).join(', ')
const neverInherited =
  /^(AWS_|GITHUB_TOKEN$|.*_KEY$|.*_TOKEN$|SSH_AUTH_SOCK$|DBUS_|XDG_RUNTIME_DIR$|DOCKER_HOST$|KUBECONFIG$|LD_PRELOAD$|LD_LIBRARY_PATH$|NODE_OPTIONS$)/

export const givenProbes: readonly Probe[] = [
  {
    id: 'environment.declared',
    number: 86,
    group: 'environment',
    protects: 'A server has the variables that were meant for it, and no others.',
    control: 'environment',
    trial: ({ spec }) => ({
      expected: Object.keys(spec.environment).toSorted().join(' '),
      attempts: [
        finds(['environment'], (text) =>
          amiss(
            variablesIn(text)
              .map(({ name }) => name)
              .filter((name) => !Object.hasOwn(spec.environment, name)),
          ),
        ),
      ],
    }),
  },
  {
    id: 'environment.secrets',
    number: 87,
    group: 'environment',
    protects: 'No key, token or address of an agent comes from the daemon’s environment.',
    control: 'environment',
    trial: ({ spec, canaries }) => ({
      expected: 'absent',
      attempts: [
        finds(['environment'], (text) =>
          amiss(
            variablesIn(text).flatMap(({ name, value }) => {
              const isCanary = `${name}=${value}`.includes(canaries.word)
              const isDeclared = Object.hasOwn(spec.environment, name)
              return isCanary || (!isDeclared && neverInherited.test(name)) ? [name] : []
            }),
          ),
        ),
      ],
    }),
  },
  {
    id: 'descriptors.inherited',
    number: 88,
    group: 'descriptors',
    protects: 'No open file of the daemon’s is left to a server.',
    control: 'descriptors',
    trial: () => ({
      expected: '0, 1 and 2',
      attempts: [
        finds(['descriptors'], (text) => amiss(words(text).filter((line) => !/^[012] /.test(line)))),
      ],
    }),
  },
  {
    id: 'descriptors.folders',
    number: 89,
    group: 'descriptors',
    protects: 'No open folder leads around the mounts.',
    control: 'descriptors',
    trial: () => ({
      expected: 'no folder',
      attempts: [
        finds(['descriptors'], (text) => amiss(words(text).filter((line) => line.endsWith(' folder')))),
      ],
    }),
  },
  {
    id: 'descriptors.streams',
    number: 90,
    group: 'descriptors',
    protects: 'The three streams are neither a terminal nor a file, and cannot be opened again as one.',
    control: 'streams',
    trial: ({ driver }) => ({
      expected: driver === 'docker' ? 'pipes' : 'sockets or pipes, ENXIO when opened again',
      attempts: [
        finds(['descriptors'], (text) => amiss(words(text).filter((line) => !/ (socket|pipe)$/.test(line)))),
        // A pipe can be opened again, by those who have it: the server could speak to itself.
        ...(driver === 'docker' ? [] : [0, 1, 2]).map((fd) =>
          stops(['open-for-writing', `/proc/self/fd/${fd}`], ['ENXIO']),
        ),
      ],
    }),
  },
]
