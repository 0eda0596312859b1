// Learning a profile: watch a server at work in a sandbox that shows it ever more of what it asks for, draft, and prove.
//
//   show what was named ─> run, observed ─> it asked for more that may be shown? ─> again
//     └> needs ─> draft ─> the same drive under the draft ─> without each grant in turn ─> verify
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { userFolder } from '../../config/find.ts'
import { stateDirectory } from '../../config/paths.ts'
import { SallyportError } from '../../errors.ts'
import { counted } from '../../lib/counted.ts'
import { newDaemonId } from '../../lib/ids.ts'
import { silent } from '../../lib/logger.ts'
import { parentDirectories } from '../../sandbox/cgroup/cgroup.ts'
import { hostFingerprint } from '../../sandbox/fingerprint/fingerprint.ts'
import { createLaunchHost } from '../../sandbox/host.ts'
import { pinFileOnce } from '../../sandbox/program/pinned-file.ts'
import { temporary } from '../lab/ground.ts'
import { type Janitor, startJanitor } from '../lab/janitor.ts'
import type { Verification } from '../result.ts'
import { verifyProfile } from '../verify.ts'
import { type Place, runObserved } from './confine.ts'
import { judgeWritable } from './copies.ts'
import { draftOf } from './draft.ts'
import { formatDraft } from './draft-text.ts'
import { briefDrive, type Drive } from './drive.ts'
import type { Observation } from './observation.ts'
import type { LearnOptions } from './options.ts'
import { callsIn, partsOf } from './parts.ts'
import { refuseRunner } from './package-runner.ts'
import { prove, type Proof } from './prove.ts'
import { View, type Withheld } from './view.ts'
import { observed, showNamed, watchUntilAllIsShown } from './watch.ts'

export interface Learned {
  /** The profile's file */
  readonly text: string
  readonly proof: Proof
  /** Of the draft as it stands, or why there is none, in a sentence */
  readonly verification: Verification | string
  /** What was seen in the last observed run */
  readonly observed: Pick<
    Observation,
    'started' | 'memoryBytes' | 'threads' | 'descriptors' | 'scratchBytes' | 'isCut'
  >
  /** Names of the system calls that it made */
  readonly calls: readonly string[]
  readonly withheld: readonly Withheld[]
}

const wholeMs = 900_000

/** Learns. Throws as a launch does, and where the server can not be observed; what does not hold is in the result. */
export const learnProfile = async (options: LearnOptions): Promise<Learned> => {
  const { host, drive, log = silent, onProgress = () => undefined } = options
  refuseRunner(options.command, options.args)
  const signal = AbortSignal.any([options.signal ?? [], AbortSignal.timeout(wholeMs)].flat())
  await using janitor = await startJanitor()
  await using folder = await ownFolder(janitor)
  const own = [folder.path, await stateDirectory(undefined, host), userFolder(host)]
  const daemon = newDaemonId()
  for (const group of parentDirectories((await hostFingerprint()).cgroups, daemon))
    await janitor.takes(`group /${group.slice(1)}`)
  await using launchHost = await createLaunchHost({
    daemon,
    stateDirectory: folder.path,
    own,
    homes: [host.home],
    environment: host.env,
    drivers: ['bubblewrap'],
    // Each draft is a config of its own, and the server's program one and the same file.
    pinFile: pinFileOnce(),
    log,
  })
  await judgeWritable(options.write, launchHost.facts)
  const command = options.command.includes('/') ? resolve(options.command) : options.command
  const name = basename(command)
    .replace(/[^A-Za-z0-9_.-]/g, '-')
    .slice(0, 64)
  const onStderr = options.onStderr ?? (() => undefined)
  const place: Place = {
    host,
    launchHost,
    janitor,
    folder: folder.path,
    subject: { name, command, args: options.args },
    onStderr,
    signal,
  }
  // Paths of Sallyport's own are denied; the view judges by the same facts as the launch will.
  const view = new View(launchHost.facts, host.home, options.write)
  await showNamed(view, options, command)

  const first = drive.recorded === undefined ? drive : briefDrive
  let watched = await watchUntilAllIsShown(place, view, options, first)
  let repeated: Drive = drive
  if (drive.recorded !== undefined) {
    onProgress('your host drives it, observed')
    const parts = partsOf(options, view, await runObserved(place, observed(view, options, drive)))
    await options.onUnproven?.(
      formatDraft(await draftOf(parts), parts, 'Not proven: nothing was tried under it'),
    )
    repeated = drive.recorded()
    watched = await watchUntilAllIsShown(place, view, options, repeated)
  }
  const parts = partsOf(options, view, watched)
  const proven = await prove(place, parts, repeated, watched.ran.answers, { onProgress })
  const { proof } = proven
  const text = formatDraft(await draftOf(proven.parts), proven.parts, saying(repeated, proof))
  const verification = proof.holds ? await verify(text, place, options) : 'the draft is not proven'
  const { started, memoryBytes, threads, descriptors, scratchBytes, isCut } = watched.observation
  return {
    text,
    proof,
    verification,
    observed: { started, memoryBytes, threads, descriptors, scratchBytes, isCut },
    calls: callsIn(watched.observation).made,
    withheld: parts.withheld,
  }
}

const saying = ({ what }: Drive, { holds, requests, needed, differences }: Proof): string =>
  holds
    ? `Proven with ${what}: ${counted(requests, 'request passes', 'requests pass')} under it, and not without any of ${counted(needed.length, 'grant')}`
    : `Not proven with ${what}: ${differences.slice(0, 3).join('; ')}`

const verify = async (
  text: string,
  { folder, signal }: Place,
  { host, name, controls, onProgress }: LearnOptions,
): Promise<Verification | string> => {
  const directory = join(folder, 'verified')
  await mkdir(join(directory, 'profiles'), { recursive: true })
  await writeFile(join(directory, 'profiles', `${name}.yaml`), text, { mode: 0o600 })
  const tell = (stage: string): void => onProgress?.(`verify: ${stage}`)
  try {
    const some = controls === undefined ? {} : { controls }
    return await verifyProfile(name, { host, directory, signal, onProgress: tell, ...some })
  } catch (error) {
    signal.throwIfAborted()
    // Such as a folder to write to that belongs to another user than the sandbox's: a launch is refused for it, too.
    if (error instanceof SallyportError && error.code !== 'ERR_INTERNAL') return error.message
    throw error
  }
}

/** Of a short name, since the path of a socket lies in it; others may pass through to what is theirs. */
const ownFolder = async (janitor: Janitor): Promise<AsyncDisposable & { readonly path: string }> => {
  const path = await temporary('sp-learn-')
  await janitor.takes(`tree /${path.slice(1)}`)
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}
