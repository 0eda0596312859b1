// Removes the containers that a dead daemon left, and only those whose daemon is provably dead.
import { existsSync } from 'node:fs'
import { chmod, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../../lib/folder.ts'
import { late } from '../../lib/late.ts'
import { SallyportError } from '../../errors.ts'
import type { DaemonId } from '../../lib/ids.ts'
import type { Logger } from '../../lib/logger.ts'
import { isMissing } from '../../lib/missing.ts'
import { type DaemonMark, isDead, markOf, readMark } from '../daemon-mark.ts'
import { labels } from './container.ts'
import { describeEndpoint, type Endpoint, findEndpoint } from './endpoint.ts'
import type { Waiting } from './answers.ts'
import type { Engine } from './engine.ts'
import { forgetMade, isStillMaking } from './making.ts'

const engineClient = late(() => import('./engine.ts'), ['dockerode'])

/** Says in a daemon's folder whose it is */
export const markFile = 'daemon.json'

/** How long a daemon that starts waits for each answer of the engine of a dead one, ms */
const sweepMs = 5_000

const folders = (stateDirectory: string): string => join(stateDirectory, 'docker')

/** Makes the folder in which a daemon keeps what its containers are given, and writes down whose it is and which engine has them. */
export const makeDaemonFolder = async (
  stateDirectory: string,
  daemon: DaemonId,
  endpoint: Endpoint,
): Promise<string> => {
  const folder = join(folders(stateDirectory), daemon)
  makeFolder(folder, 0o700)
  await chmod(folders(stateDirectory), 0o700)
  await writeFile(
    join(folder, `${markFile}.new`),
    JSON.stringify({ ...markOf(daemon), engine: describeEndpoint(endpoint) }),
    {
      mode: 0o600,
    },
  )
  await rename(join(folder, `${markFile}.new`), join(folder, markFile))
  return folder
}

/**
 * Removes what dead daemons of this state directory left with their engines, and returns the names of the containers.
 *
 * A container goes where its label says a dead daemon's id and its name begins with it: an image may bring any label, and no
 * name. What can't be removed, since the engine does not answer in time, is logged and stays for the next daemon. However
 * many daemons died, an engine that hangs is waited for once.
 */
const sweepContainers = async (
  stateDirectory: string,
  { log, environment }: Pick<Sweep, 'log' | 'environment'>,
): Promise<readonly string[]> => {
  const names = await namesIn(folders(stateDirectory))
  return (
    await Promise.all(names.map((name) => sweepDaemon(stateDirectory, name, { log, environment })))
  ).flat()
}

/** How long until it is looked again for what an engine may still make for a dead daemon, ms */
const againMs = 2_000

interface Sweep {
  readonly log: Logger
  /** Where an engine is found now, with what proves who is who over a network */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly tell: (removed: readonly string[]) => void
  readonly signal: AbortSignal
}

/** Sweeps, and goes on while an engine may still make what a dead daemon asked it for; `tell` hears what was removed. */
export const keepSweeping = async (stateDirectory: string, sweep: Sweep): Promise<void> => {
  const { tell, signal } = sweep
  tell(await sweepContainers(stateDirectory, sweep))
  if (!signal.aborted && (await isAnyStillMaking(stateDirectory))) sweepLater(stateDirectory, sweep)
}

const sweepLater = (stateDirectory: string, sweep: Sweep): void => {
  const again = async (): Promise<void> => {
    try {
      if (!sweep.signal.aborted) await keepSweeping(stateDirectory, sweep)
    } catch (error) {
      sweep.log.warn({ error }, 'containers of a daemon that died may be left, and are looked for again')
      sweepLater(stateDirectory, sweep)
    }
  }
  setTimeout(() => void again(), againMs).unref()
}

const isAnyStillMaking = async (stateDirectory: string): Promise<boolean> => {
  for (const name of await namesIn(folders(stateDirectory))) {
    const folder = join(folders(stateDirectory), name)
    const mark = readMark(await readFile(join(folder, markFile), 'utf8').catch(() => ''))
    if (mark !== null && isDead(mark) && (await isStillMaking(folder))) return true
  }
  return false
}

const sweepDaemon = async (
  stateDirectory: string,
  name: string,
  { log, environment }: Pick<Sweep, 'log' | 'environment'>,
): Promise<readonly string[]> => {
  const folder = join(folders(stateDirectory), name)
  const mark = readMark(await readFile(join(folder, markFile), 'utf8').catch(() => ''))
  // Killed before it could write who it was, it had no container; a living one stands among the daemons.
  if (mark === null && !existsSync(join(stateDirectory, 'daemons', `${name}.json`)))
    await rm(folder, { recursive: true, force: true })
  const address = mark?.['engine']
  if (mark === null || mark.daemon !== name || typeof address !== 'string' || !isDead(mark)) return []
  try {
    const { openEngine } = await engineClient()
    using engine = await openEngine(endpointAt(address, environment), environment)
    const removed = await removeOf(engine, mark, folder, { ms: sweepMs })
    if (!(await isStillMaking(folder))) await rm(folder, { recursive: true, force: true })
    return removed
  } catch (error) {
    const { code, message } = SallyportError.from(error)
    log.warn({ daemon: name, code, reason: message }, 'containers of a daemon that died may be left')
    return []
  }
}

// What proves who is who stands in no mark: an engine over a network is the one that is named now, or none.
const endpointAt = (address: string, environment: Sweep['environment']): Endpoint => {
  if (address.startsWith('unix://')) return findEndpoint({ DOCKER_HOST: address })
  const now = findEndpoint(environment)
  if (describeEndpoint(now) === address) return now
  throw new SallyportError(
    'ERR_ENGINE_ENDPOINT',
    `the engine of a daemon that died was ${address}, and the one that is named now is ${describeEndpoint(now)}; name the first once more, or remove its containers by the label ${labels.daemon}`,
    { address },
  )
}

/** Removes every container of one daemon, whose folder is given; returns their names once the engine has none of them any more. */
export const removeOf = async (
  engine: Engine,
  { daemon }: Pick<DaemonMark, 'daemon'>,
  folder: string,
  waiting: Waiting = {},
): Promise<string[]> => {
  const found = await engine.list([`${labels.daemon}=${daemon}`], waiting)
  const ours = found.filter(({ Names }) => Names.some((name) => name.startsWith(`/sallyport-${daemon}-`)))
  const names = ours.flatMap(({ Names }) => Names.map((name) => name.slice(1)))
  // First, since whoever is killed between the two leaves a container that its label tells of, and no note that nothing ends.
  await forgetMade(folder, names)
  await Promise.all(ours.map(({ Id }) => engine.remove(Id, waiting)))
  return names
}

const namesIn = async (folder: string): Promise<readonly string[]> => {
  try {
    return await readdir(folder)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}
