// Probes 1 to 7, 11 and 20 to 25: what a server finds of the host's files, and what it can change of its own.
import { dirname, join } from 'node:path'
import { finds, stops, stopsOrFinds } from '../attempt.ts'
import type { Probe, Scene } from '../probe.ts'

const absent = ['ENOENT'] as const
const readOnly = ['EROFS'] as const
const scratch = ['/tmp', '/home/user', '/dev/shm'] as const

/** Paths of the host that the plan says nothing of, each of which must be absent. */
const missing = (scene: Scene, paths: readonly string[]) =>
  paths.filter((path) => scene.isHidden(path)).map((path) => stops(['stat', path], absent))

export const fileProbes: readonly Probe[] = [
  {
    id: 'files.shadow',
    number: 1,
    group: 'files',
    protects: 'The password hashes of the host are not there to be read.',
    control: 'mount-plan',
    trial: () => ({
      expected: 'ENOENT',
      attempts: [stops(['stat', '/etc/shadow'], absent), stops(['read', '/etc/shadow'], absent)],
    }),
  },
  {
    id: 'files.home',
    number: 2,
    group: 'files',
    protects: 'Nothing of the home of whoever runs Sallyport is seen.',
    control: 'mount-plan',
    trial: ({ canaries }) => ({
      expected: 'ENOENT',
      attempts: [stops(['read', join(canaries.home, 'canary')], absent)],
    }),
  },
  {
    id: 'files.tmp',
    number: 3,
    group: 'files',
    protects: 'What other programs leave in the host’s /tmp is not seen.',
    control: 'mount-plan',
    trial: ({ canaries }) => ({
      expected: 'ENOENT',
      attempts: [stops(['read', join(canaries.folder, 'canary')], absent)],
    }),
  },
  {
    id: 'files.host-folders',
    number: 4,
    group: 'files',
    protects: 'The host’s folders that were not declared do not exist, not even by name.',
    control: 'mount-plan',
    trial: (scene) => ({
      expected: 'ENOENT for each',
      attempts: missing(scene, ['/root', '/var', '/boot', '/run', '/opt', '/mnt', '/srv', '/media']),
    }),
  },
  {
    id: 'files.read-only',
    number: 5,
    group: 'files',
    protects: 'A server changes neither its root nor the programs and settings that it runs with.',
    control: 'read-only',
    trial: ({ spec }) => ({
      expected: 'EROFS for each, and mounts that are read-only',
      attempts: [
        ...['/x', '/etc/x', '/dev/x', '/sallyport/x'].map((path) => stops(['create', path], readOnly)),
        // Absent where a profile has nothing of it.
        ...['/usr/x', '/usr/bin/x'].map((path) => stops(['create', path], [...readOnly, ...absent])),
        ...[...spec.mounts.filter(({ access }) => access === 'read'), { target: '/sallyport/init' }].map(
          ({ target }) =>
            finds(
              ['flags', target],
              (text) => (text.startsWith('ro') ? null : `mounted ${text}`),
              `mount of ${target}`,
            ),
        ),
      ],
      outside: [stops(['create', '/tmp/sallyport-verify-created'], readOnly)],
    }),
  },
  {
    id: 'files.scratch-size',
    number: 6,
    group: 'files',
    protects: 'A server’s /tmp and home are its own, and as large as its profile says.',
    control: 'sized-scratch',
    trial: ({ spec }) => sized(['/tmp', '/home/user'], spec.limits.tmpBytes),
  },
  {
    id: 'files.shared-memory-size',
    number: 7,
    group: 'files',
    protects: 'A server’s /dev/shm is its own, and as large as its profile says.',
    control: 'sized-scratch',
    trial: ({ spec }) => sized(['/dev/shm'], spec.limits.tmpBytes),
  },
  {
    id: 'files.around-by-proc',
    number: 11,
    group: 'files',
    protects: 'No link in /proc leads around the mounts, PID 1’s included.',
    control: 'pid-1',
    trial: () => ({
      expected: 'EACCES at PID 1, ENOENT by one’s own root',
      attempts: [
        stops(['read', '/proc/1/root'], ['EACCES', 'EPERM']),
        stops(['read', '/proc/1/cwd'], ['EACCES', 'EPERM']),
        stops(['read', '/proc/self/root/etc/shadow'], absent),
      ],
      outside: [stops(['read', '/proc/{main}/root'], []), stops(['read', '/proc/{main}/cwd'], [])],
    }),
  },
  {
    id: 'files.links',
    number: 20,
    group: 'files',
    protects: 'A symbolic or hard link that a server makes leads to no file of the host.',
    control: 'mount-plan',
    trial: ({ canaries }) => ({
      expected: 'ENOENT through a symbolic link, no hard link',
      attempts: [
        stops(['read-through-link', '/tmp/verify-link', join(canaries.folder, 'canary')], absent),
        stops(['hard-link', '/tmp/verify-link', join(canaries.folder, 'canary')], ['ENOENT', 'EXDEV']),
      ],
    }),
  },
  {
    id: 'files.dot-dot',
    number: 21,
    group: 'files',
    protects: 'Going up from anywhere ends at the sandbox’s own root.',
    control: 'mount-plan',
    trial: ({ canaries }) => ({
      expected: 'ENOENT',
      attempts: ['/home/user/../..', '/tmp/../../../..', '/usr/bin/../../..'].map((from) =>
        stops(['read', `${from}${canaries.folder}/canary`], absent),
      ),
    }),
  },
  {
    id: 'files.sockets-of-others',
    number: 22,
    group: 'files',
    protects: 'No socket of a container engine, a message bus, an agent or a display is there.',
    control: 'mount-plan',
    trial: (scene) => ({
      expected: 'ENOENT for each',
      attempts: missing(scene, [
        scene.canaries.socket,
        '/run/docker.sock',
        '/var/run/docker.sock',
        '/run/containerd/containerd.sock',
        '/run/podman/podman.sock',
        '/run/crio/crio.sock',
        '/run/dbus/system_bus_socket',
        '/run/systemd/private',
        '/run/user',
        '/tmp/.X11-unix',
      ]),
    }),
  },
  {
    id: 'files.secrets-of-people',
    number: 23,
    group: 'files',
    protects: 'Keys and tokens where tools keep them, a cloud’s or a cluster’s, are not there.',
    control: 'mount-plan',
    trial: (scene) => ({
      expected: 'ENOENT for each',
      attempts: missing(scene, [
        join(scene.canaries.home, '.aws', 'credentials'),
        ...secretPlaces.map((name) => join(dirname(scene.canaries.home), name)),
        '/var/run/secrets/kubernetes.io/serviceaccount/token',
      ]),
    }),
  },
  {
    id: 'files.sallyport',
    number: 24,
    group: 'files',
    protects: 'Sallyport’s own configuration, journal and sockets are not there.',
    control: 'mount-plan',
    trial: (scene) => ({
      expected: 'ENOENT for each',
      attempts: missing(scene, [
        scene.canaries.state,
        '/etc/sallyport',
        '/var/lib/sallyport',
        '/run/sallyport',
        join(dirname(scene.canaries.home), '.local', 'state', 'sallyport'),
        join(dirname(scene.canaries.home), '.config', 'sallyport'),
      ]),
    }),
  },
  {
    id: 'files.fill',
    number: 25,
    group: 'files',
    protects: 'Filling every scratch folder stops at the profile’s size, not at the host’s.',
    control: 'sized-scratch',
    trial: ({ spec }) => ({
      expected: 'ENOSPC above the size',
      attempts: scratch.map((path) =>
        stops(['reserve', path, `${spec.limits.tmpBytes + 1_048_576}`], ['ENOSPC', 'EFBIG']),
      ),
      outside: [stops(['reserve', '/dev/shm', '1048576'], [])],
    }),
  },
]

const secretPlaces = [
  '.aws',
  '.kube',
  '.ssh',
  '.gnupg',
  '.docker/config.json',
  '.git-credentials',
  '.npmrc',
  '.netrc',
  '.bash_history',
]

const sized = (paths: readonly string[], bytes: number) => ({
  expected: `at most ${bytes} bytes`,
  attempts: paths.map((path) =>
    stopsOrFinds(['size', path], [], (text) => (Number(text) > bytes + 4096 ? `${text} bytes` : null)),
  ),
  outside: [
    finds(
      ['size', '/'],
      (text) => (Number(text) > bytes + 4096 ? `${text} bytes` : null),
      'size of the host’s /',
    ),
  ],
})
