// A verification of a profile: the battery in the very sandbox of its launches, outside, and with controls taken out.
//
//   plant canaries ─> a neighbour starts ─> inside ∥ outside ─> what takes all, alone ─> arms ─> verdicts
import { readlink } from 'node:fs/promises'
import { arch, hostname, release } from 'node:os'
import type { Host } from '../config/host.ts'
import { userFolder } from '../config/find.ts'
import { settingsOf } from '../config/load.ts'
import { SallyportError } from '../errors.ts'
import { newDaemonId } from '../lib/ids.ts'
import { type Logger, silent } from '../lib/logger.ts'
import { isWithin } from '../lib/path-overlap.ts'
import { presentProcMasks } from '../sandbox/bubblewrap/masks.ts'
import { createLaunchHost } from '../sandbox/host.ts'
import { findProbesBinary } from '../sandbox/init-binary.ts'
import type { StatedAssertion } from '../schema/assertion.ts'
import type { SandboxSpec } from '../sandbox/spec.ts'
import { tryAssertions } from './assertions.ts'
import { plantCanaries } from './canaries.ts'
import { catalogue } from './catalogue.ts'
import { tryArms } from './arms.ts'
import { judge } from './judge.ts'
import { answersInside, answersOutside, type Planned } from './inside.ts'
import { type Lab, specOf } from './lab.ts'
import { chooseListeners, startNeighbour } from './neighbour.ts'
import type { Scene } from './probe.ts'
import { openWayOut } from './way-out.ts'
import { overall, type ProbeResult, type Verification } from './result.ts'

export interface VerifyOptions {
  readonly host: Host
  /** Folder whose profiles are found beside the shipped ones; the user's own where it is left out */
  readonly directory?: string
  /** Takes each control out in turn, and holds every probe to going red */
  readonly selfCheck?: boolean
  /** What must hold beside what the profile itself states */
  readonly assertions?: readonly StatedAssertion[]
  readonly log?: Logger
  readonly signal?: AbortSignal
  /** Called before each stage, in people's words */
  readonly onProgress?: (stage: string) => void
}

const wholeMs = 120_000

/**
 * Verifies a profile by itself, without a server, and returns what was found. Nothing of it is left on the host.
 *
 * Throws a `SallyportError` where there is no such profile or no sandbox at all; whatever else goes wrong is a verdict.
 */
export const verifyProfile = async (profileName: string, options: VerifyOptions): Promise<Verification> => {
  const { host, selfCheck = false, log = silent, onProgress = () => undefined } = options
  const [startedAt, from] = [new Date().toISOString(), performance.now()]
  const signal = AbortSignal.any([options.signal ?? [], AbortSignal.timeout(wholeMs)].flat())
  const { settings, server: plain, profile } = await settingsFor(profileName, options)
  const isOpen = profile.network.mode === 'allowlist'
  onProgress('planting what a server must not find')
  await using planted = await plantCanaries(host.home)
  const { canaries } = planted
  await using wayOut = await openWayOut(canaries)
  await using launchHost = await createLaunchHost({
    daemon: newDaemonId(),
    stateDirectory: canaries.state,
    own: [canaries.state],
    homes: [host.home],
    environment: { ...host.env, ...canaries.variables },
    log,
  })
  const lab: Lab = {
    host: launchHost,
    settings,
    server: isOpen ? { ...plain, egress: [...plain.egress, wayOut.grant] } : plain,
    profile,
    openDoor: isOpen ? wayOut.openDoor([...plain.egress, wayOut.grant]) : null,
    program: planted.program,
    folder: canaries.folder,
    variables: canaries.variables,
    signal,
  }
  await using neighbour = await startNeighbour(lab, await chooseListeners())
  const { spec, enforcedBy } = await specOf(lab)
  const scene: Scene = {
    spec,
    profile,
    enforcedBy,
    canaries,
    masked: (await presentProcMasks()).map(({ path }) => path),
    namespaces: await ownNamespaces(),
    hostName: hostname(),
    freeBytes: process.availableMemory(),
    neighbour,
    wayOut,
    isHidden: (path) => isHidden(spec, path),
  }
  const planned = catalogue.map((probe): Planned => ({ probe, trial: probe.trial(scene) }))
  onProgress('inside and outside')
  const [inside, outside] = await Promise.all([answersInside(lab, planned), answersOutside(lab, planned)])
  onProgress(selfCheck ? 'without each control' : 'without the controls that are not to be seen open outside')
  const arms = await tryArms(lab, canaries, planned, { outside, selfCheck, listeners: neighbour })
  const probes = planned.map(({ probe, trial }): ProbeResult => {
    return judge({
      probe,
      trial,
      inside: inside.get(probe) ?? [],
      outside: outside.get(probe) ?? [],
      arm: arms.get(probe) ?? null,
      isSelfCheck: selfCheck,
      spec,
    })
  })
  onProgress('what is stated')
  const assertions = await tryAssertions(lab, [...profile.assertions, ...(options.assertions ?? [])])
  return {
    profile: profile.name,
    server: null,
    driver: 'bubblewrap',
    host: {
      kernel: release(),
      arch: arch(),
      uid: host.uid,
      tool: launchHost.fingerprint.bubblewrap?.version ?? null,
    },
    startedAt,
    durationMs: performance.now() - from,
    probes,
    assertions,
    enforcedBy,
    verdict: overall([...probes, ...assertions]),
  }
}

const settingsFor = async (
  profile: string,
  { host, directory }: VerifyOptions,
): Promise<Pick<Lab, 'settings' | 'server' | 'profile'>> => {
  const name = 'sallyport-probes'
  const value = {
    version: 1,
    allowed_commands: [{ name, path: await findProbesBinary() }],
    servers: {
      probes: {
        command: name,
        args: ['/sallyport/attempts'],
        version: '1',
        justification: 'a verification',
        profile,
      },
    },
  }
  const settings = await settingsOf(value, directory ?? userFolder(host), host)
  const server = settings.servers.get('probes')
  const found = settings.profiles.get(server?.profile ?? '')
  if (server === undefined || found === undefined)
    throw new SallyportError('ERR_INTERNAL', `settings of ${profile} have no server for the probes`, {
      profile,
    })
  return { settings, server, profile: found }
}

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
