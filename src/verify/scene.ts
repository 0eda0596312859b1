// Where a subject is verified: the lab in which its launches are tried, and the scene that trials are made for.
import { readFile, readlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { isMissing } from '../lib/missing.ts'
import { isWithin } from '../lib/path-overlap.ts'
import { presentProcMasks } from '../sandbox/bubblewrap/masks.ts'
import { isUnsettled, withUnsettledTried } from '../sandbox/fingerprint/fingerprint.ts'
import type { LaunchHost } from '../sandbox/host.ts'
import { findProbesBinary } from '../sandbox/init-binary.ts'
import { noSupply } from '../sandbox/launch.ts'
import type { SandboxSpec } from '../sandbox/spec.ts'
import type { Canaries } from './lab/canaries.ts'
import { type Exhibit, setuidPrograms } from './lab/exhibit.ts'
import type { Lab } from './lab/lab.ts'
import { ampleMs } from './lab/patience.ts'
import type { Neighbour } from './lab/neighbour.ts'
import type { Exposure } from './lab/removal.ts'
import type { Confined } from './lab/try.ts'
import type { WayOut } from './lab/way-out.ts'
import type { Scene } from './probe.ts'
import { askedOf, asStated, type Subject } from './subject.ts'

/** What a verification has set up on this machine. */
export interface Grounds {
  readonly host: LaunchHost
  readonly canaries: Canaries
  readonly exhibit: Exhibit
  readonly wayOut: WayOut
}

/** The launches of the subject, with nothing taken out. `program` is the probes' where any user may execute it. */
export const labOf = async (
  { settings, server: plain, profile, isReal }: Subject,
  { host, canaries, exhibit, wayOut }: Grounds,
  program: string,
  signal: AbortSignal,
): Promise<Lab> => {
  const isOpen = profile.network.mode === 'allowlist'
  const doors = wayOut.doors([...plain.egress, wayOut.grant])
  return {
    host,
    settings,
    server: isOpen ? { ...plain, egress: [...plain.egress, wayOut.grant] } : plain,
    profile,
    isStandIn: isReal,
    grant: wayOut.grant,
    openDoor: isOpen ? doors.own : null,
    doors,
    broad: { pattern: '*.test', doorFor: wayOut.doorFor },
    probes: await findProbesBinary(),
    program,
    folder: canaries.folder,
    trees: canaries,
    capable: exhibit.capable,
    readsAtOnce: false,
    kills: true,
    disagrees: true,
    patienceMs: ampleMs,
    secrets: noSupply.secrets(),
    variables: canaries.variables,
    signal,
  }
}

/** What trials read of the sandbox that came of it, and of this machine around it. */
export const sceneOf = async (
  subject: Subject,
  { spec, enforcedBy, kernel }: Confined,
  { host, canaries, exhibit, wayOut }: Grounds,
  {
    exposure,
    neighbour,
    foreign,
  }: Pick<Scene, 'foreign'> & { readonly exposure: Exposure; readonly neighbour: Neighbour },
): Promise<Scene> => {
  const { server, profile } = subject
  return {
    spec: asStated(spec, profile),
    driver: server.driver,
    kernel,
    profile,
    enforcedBy,
    canaries,
    masked: (await presentProcMasks()).map(({ path }) => path),
    namespaces: await ownNamespaces(),
    hostName: hostname(),
    isRoot: process.geteuid?.() === 0,
    canConnect: server.driver === 'docker' || (await connects(host)),
    groupsMissing: missingIn(host.limits),
    hasSwap: await swaps(),
    countsPerNamespace: host.limits.nprocPerNamespace,
    foreign,
    setuidPrograms: await setuidPrograms(),
    capable: exhibit.capable,
    incapable: exhibit.incapable,
    launchers: exposure.launchers,
    freeBytes: process.availableMemory(),
    neighbour,
    wayOut,
    asked: askedOf(subject),
    isHidden: (path) => isHidden(spec, path),
  }
}

// A kernel that can't swap has no such file.
const swaps = async (): Promise<boolean> => {
  const table = await readFile('/proc/swaps', 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return ''
    throw error
  })
  return table.trim().includes('\n')
}

const connects = async ({ fingerprint }: LaunchHost): Promise<Scene['canConnect']> => {
  const { egressTrial } = await withUnsettledTried(fingerprint, true)
  return isUnsettled(egressTrial) ? 'unknown' : egressTrial?.works === true
}

const missingIn = ({ cgroups: { cause, mend } }: LaunchHost['limits']): string | null =>
  cause === null ? null : [cause, mend].filter((part) => part !== null).join('; ')

const ownNamespaces = async (): Promise<Readonly<Record<string, string>>> => {
  const kinds = ['mnt', 'pid', 'net', 'ipc', 'uts', 'user', 'cgroup']
  return Object.fromEntries(
    await Promise.all(kinds.map(async (kind) => [kind, await readlink(`/proc/self/ns/${kind}`)] as const)),
  )
}

const isHidden = ({ mounts, links }: SandboxSpec, path: string): boolean => {
  const shown = [...mounts.map(({ target }) => target), ...links.map((link) => link.path)]
  return !shown.some((target) => isWithin(path, target) || isWithin(target, path))
}
