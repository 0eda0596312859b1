// Probes 125, 138 and 139: what a launch mounts is the very file that was judged, whoever puts another in its place.
import { lstatSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { newInstanceId } from '../../lib/ids.ts'
import type { Mount } from '../../sandbox/spec.ts'
import { refusesLaunch, stops } from '../attempt.ts'
import { alsoMounted } from '../lab/container-removal.ts'
import { swappedTarget } from '../arms/gate-controls.ts'
import type { Probe } from '../probe.ts'
import { showing } from '../lab/removal.ts'

/** Plans a mount of a file or folder, and puts another in its place: between judgement and gate, on the same device. */
const replaced = (kind: Mount['kind'], beside: string): Mount => {
  const folder = join(dirname(beside), `swapped-${newInstanceId()}`)
  const [source, other, away] = ['judged', 'other', 'away'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  mkdirSync(folder, { mode: 0o755 })
  for (const path of [source, other])
    if (kind === 'directory') mkdirSync(path, { mode: 0o755 })
    else writeFileSync(path, 'x', { mode: 0o644 })
  const judged = mountOf(source, kind)
  renameSync(source, away)
  renameSync(other, source)
  return judged
}

/** The plan remembers another device than the file is on, with the file's own number there. */
const onAnotherDevice = (source: string): Mount => {
  const mount = mountOf(source, 'file')
  return { ...mount, dev: mount.dev + 1n }
}

const mountOf = (source: string, kind: Mount['kind']): Mount => {
  const { dev, ino } = lstatSync(source, { bigint: true })
  const reason = 'a file that was replaced since'
  return { source, target: swappedTarget, access: 'read', kind, dev, ino, reason, origin: 'supervisor' }
}

const probe = (
  described: Pick<Probe, 'id' | 'number' | 'protects'>,
  label: string,
  ask: 'read' | 'list',
  swap: (program: string) => Mount,
): Probe => ({
  ...described,
  group: 'files',
  control: 'mount-identity',
  isAlone: true,
  endsBy: 'refused',
  provoke: (plan, { program }) => {
    const mount = swap(program)
    return {
      ...showing('swapped', [[mount.source, swappedTarget]])(plan),
      spec: { ...plan.spec, mounts: [...plan.spec.mounts, mount] },
    }
  },
  provokeContainer: (plan, { program }) => {
    const mount = swap(program)
    return {
      container: alsoMounted(plan, mount.source, swappedTarget).container,
      spec: { ...plan.spec, mounts: [...plan.spec.mounts, mount] },
    }
  },
  trial: ({ canaries }) => ({
    expected: 'refused at the gate',
    attempts: [refusesLaunch([ask, swappedTarget], /that was judged/, label)],
    outside: [stops(['read', join(canaries.folder, 'canary')], [], 'a file that is there')],
  }),
})

export const judgedProbes: readonly Probe[] = [
  probe(
    {
      id: 'files.judged',
      number: 125,
      protects: 'A file that is replaced after it was judged and before it is mounted is given to nobody.',
    },
    'a mount that is another file now',
    'read',
    (program) => replaced('file', program),
  ),
  probe(
    {
      id: 'files.judged-folder',
      number: 138,
      protects: 'A folder that is replaced after it was judged and before it is mounted is given to nobody.',
    },
    'a mount that is another folder now',
    'list',
    (program) => replaced('directory', program),
  ),
  probe(
    {
      id: 'files.judged-device',
      number: 139,
      protects: 'A file of the same number on another device is not the one that was judged.',
    },
    'a mount that is on another device now',
    'read',
    onAnotherDevice,
  ),
]
