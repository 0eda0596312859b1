// What `sallyport verify` is to verify: each profile and each server loaded before the first of them is tried.
import { access, constants } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Verified } from '../config/assertion-file.ts'
import { enterpriseFolder, namedFolder, userFolder } from '../config/find.ts'
import type { Host } from '../config/host.ts'
import { loadSettings } from '../config/load.ts'
import { onNamed } from '../config/named-file.ts'
import { placeOfServer } from '../config/origin.ts'
import { runtimeDirectory, stateDirectory } from '../config/paths.ts'
import { profileSearch, readLayers, type ProfileSearch } from '../config/profile-layers.ts'
import { listProfiles } from '../config/profile-show.ts'
import { loadProfile } from '../config/profile.ts'
import { SallyportError } from '../errors.ts'
import type { ProfileSettings, Settings } from '../schema/settings.ts'
import { silent } from '../lib/logger.ts'
import { placesOf } from '../verify/report/places.ts'
import type { Reported } from '../verify/report/format.ts'
import type { Verification } from '../verify/result.ts'
import type { NamedCall } from '../verify/server/choose-call.ts'
import type { RunServer } from '../verify/server/inspect-server.ts'
import { subjectOfServer } from '../verify/subject.ts'
import { verifyProfile, verifyServer, type VerifyOptions } from '../verify/verify.ts'
import type { DriverName } from '../sandbox/drivers.ts'

/** One thing to verify, and how. */
export interface Verifiable extends Verified, Pick<Reported, 'placeOf'> {
  readonly driver: DriverName
  verify(options: Omit<VerifyOptions, 'driver'>): Promise<Verification>
}

interface Named {
  readonly profile: readonly string[]
  readonly isAll: boolean
  readonly server: readonly string[]
  readonly allServers?: boolean
  readonly call: NamedCall | null
  readonly config?: string
  /** What makes the sandboxes of profiles: each of them is tried under every one */
  readonly drivers: readonly DriverName[]
  /** The engine's OCI runtime for these, where not its own choice */
  readonly runtime?: string
}

/** Each once, profiles first; a mistake in the last is said before the first is tried. */
export async function subjectsOf(named: Named, host: Host): Promise<readonly Verifiable[]> {
  const path = named.config === undefined ? {} : { path: named.config }
  const directory = namedFolder({ ...host, ...path })
  const search = profileSearch(host, directory === null ? {} : { configFolder: directory })
  const found = named.isAll ? (await listProfiles(search)).map(({ name }) => name) : []
  const profiles = [...new Set([...named.profile, ...found])]
  const all: Verifiable[] = []
  for (const name of profiles) {
    const profile = await loadProfile(name, search)
    const placeOf = placesOf(profile, await filesOf(profile, search))
    for (const driver of named.drivers)
      all.push({
        profile: name,
        server: null,
        driver,
        placeOf,
        verify: (options) =>
          verifyProfile(name, {
            ...options,
            driver,
            ...(named.runtime !== undefined && { runtime: named.runtime }),
            directory: directory ?? userFolder(host),
          }),
      })
  }
  if (named.server.length > 0 || named.allServers === true)
    all.push(...(await serversOf(named, await loadSettings({ ...host, ...path }), host)))
  else if (named.config !== undefined) await requireThere(named.config)
  if (all.length > 0) return all
  throw new SallyportError(
    'ERR_USAGE',
    'nothing to verify; name a profile with --profile or a server with --server, or say --all or --all-servers',
  )
}

/** Profiles alone are looked for beside it, and nothing in it is read. */
const requireThere = (path: string): Promise<void> =>
  onNamed(
    {
      path,
      as: `--config ${path}`,
      access: 'read',
      code: 'ERR_CONFIG_NOT_FOUND',
      mend: 'name another, or leave --config out',
    },
    () => access(path, constants.R_OK),
  )

async function serversOf(
  { server, allServers, call }: Named,
  settings: Settings,
  host: Host,
): Promise<readonly Verifiable[]> {
  const enabled = [...settings.servers.values()].filter((one) => one.enabled).map(({ name }) => name)
  const names = [...new Set([...server, ...(allServers === true ? enabled : [])])]
  const runtimeDir = await runtimeDirectory(undefined, host)
  const own = [
    runtimeDir,
    await stateDirectory(undefined, host),
    userFolder(host),
    enterpriseFolder,
    ...settings.sources.map(({ path }) => path),
  ]
  const all: Verifiable[] = []
  for (const name of names) {
    const { profile, server: entry } = subjectOfServer(settings, name)
    const search = profileSearch(host, { configFolder: entry.directory })
    all.push({
      profile: profile.name,
      server: name,
      driver: entry.driver,
      placeOf: placesOf(profile, await filesOf(profile, search), await placeOfServer(name, settings)),
      verify: (options) => verifyServer(name, { ...options, settings, own, call, run: runIn(runtimeDir) }),
    })
  }
  return all
}

/** As `sallyport run` does: the same launch, policy and boundary, and a journal that goes with the verification. */
const runIn =
  (runtimeDir: string): RunServer =>
  async (given, waiting) => {
    const { runOne } = await import('../daemon/run-one.ts')
    return runOne({ ...given, runtimeDir, log: silent }, waiting)
  }

/** Base name -> path of the files that a profile is made of, as `decidedAt` names them. */
async function filesOf(
  { path }: ProfileSettings,
  search: ProfileSearch,
): Promise<ReadonlyMap<string, string>> {
  const layers = await readLayers(path, search)
  return new Map(layers.map(({ document }) => [basename(document.path), document.path]))
}
