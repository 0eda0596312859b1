// `sallyport verify`: the battery and what people state, tried in the very sandbox of a profile's launches.
import { writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { Option, type Command } from 'commander'
import { readAssertions } from '../config/assertion-file.ts'
import { namedFolder, userFolder } from '../config/find.ts'
import { thisHost } from '../config/host.ts'
import { profileSearch, readLayers, type ProfileSearch } from '../config/profile-layers.ts'
import { listProfiles } from '../config/profile-show.ts'
import { loadProfile } from '../config/profile.ts'
import { SallyportError } from '../errors.ts'
import { errnoOf } from '../lib/missing.ts'
import { packageVersion } from '../lib/version.ts'
import type { StatedAssertion } from '../schema/assertion.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import { placesOf } from '../verify/report/places.ts'
import { formats, type Reported } from '../verify/report/report.ts'
import { overall } from '../verify/result.ts'
import { verifyProfile } from '../verify/verify.ts'
import { hint, visible } from './output.ts'

interface VerifyFlags {
  readonly profile: readonly string[]
  readonly all?: boolean
  readonly driver: string
  readonly format: keyof typeof formats
  readonly out?: string
  readonly selfCheck?: boolean
  readonly tests: readonly string[]
  readonly config?: string
}

/** Exit status where something did not hold, or was not shown to. */
const verificationFailed = 4

export function registerVerify(program: Command): void {
  program
    .command('verify')
    .description('try what profiles promise, in the very sandboxes that servers get')
    .option('--profile <name>', 'a profile, by name; may be repeated', collect, [])
    .option('--all', 'every profile that can be found')
    .addOption(
      new Option('--driver <driver>', 'what makes the sandbox').choices(['bubblewrap']).default('bubblewrap'),
    )
    .addOption(new Option('--format <format>', 'how to say it').choices(Object.keys(formats)).default('text'))
    .option('--out <file>', 'write the report there, instead of to stdout')
    .option('--self-check', 'take each control out in turn, and hold every probe to going red')
    .option('--tests <file>', 'assertions of your own; may be repeated', collect, [])
    .option('--config <file>', 'look for profiles beside this configuration file, too')
    .action(verify)
}

async function verify(flags: VerifyFlags): Promise<void> {
  const host = thisHost()
  const directory = namedFolder({ ...host, ...(flags.config === undefined ? {} : { path: flags.config }) })
  const search = profileSearch(host, directory === null ? {} : { configFolder: directory })
  const profiles = await profilesFor(flags, search)
  const tests = await testsFor(flags.tests, profiles)
  const interrupted = new AbortController()
  const interrupt = (): void => interrupted.abort(new SallyportError('ERR_CALL_CANCELLED', 'interrupted'))
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  const reported: Reported[] = []
  for (const [index, profile] of profiles.entries()) {
    const verification = await verifyProfile(profile.name, {
      host,
      directory: directory ?? userFolder(host),
      assertions: tests.get(profile.name) ?? [],
      selfCheck: flags.selfCheck === true,
      signal: interrupted.signal,
      onProgress: (stage) =>
        hint(`${index + 1}/${profiles.length} ${visible(profile.name)}: ${visible(stage)}`),
    })
    reported.push({ verification, placeOf: placesOf(profile, await filesOf(profile, search)) })
  }
  process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  const report = formats[flags.format]({ version: packageVersion(), folder: process.cwd(), reported })
  if (flags.out === undefined) process.stdout.write(report)
  else await writeReport(flags.out, report)
  if (overall(reported.map(({ verification }) => verification)) !== 'pass')
    process.exitCode = verificationFailed
}

/** The profiles named, each once and loaded, so that a mistake in the last is said before the first is tried. */
async function profilesFor(
  { profile: named, all }: VerifyFlags,
  search: ProfileSearch,
): Promise<readonly ProfileSettings[]> {
  const found = all === true ? (await listProfiles(search)).map(({ name }) => name) : []
  const names = [...new Set([...named, ...found])]
  if (names.length === 0)
    throw new SallyportError('ERR_USAGE', 'nothing to verify; name a profile with --profile, or say --all')
  const profiles: ProfileSettings[] = []
  for (const name of names) profiles.push(await loadProfile(name, search))
  return profiles
}

async function testsFor(
  files: readonly string[],
  profiles: readonly ProfileSettings[],
): Promise<ReadonlyMap<string, readonly StatedAssertion[]>> {
  const tests = new Map<string, readonly StatedAssertion[]>()
  const names = profiles.map(({ name }) => name)
  for (const file of files)
    for (const [profile, stated] of await readAssertions(file, names))
      tests.set(profile, [...(tests.get(profile) ?? []), ...stated])
  return tests
}

/** Base name -> path of the files that a profile is made of, as `decidedAt` names them. */
async function filesOf(
  { path }: ProfileSettings,
  search: ProfileSearch,
): Promise<ReadonlyMap<string, string>> {
  const layers = await readLayers(path, search)
  return new Map(layers.map(({ document }) => [basename(document.path), document.path]))
}

async function writeReport(file: string, report: string): Promise<void> {
  try {
    await writeFile(file, report)
  } catch (error) {
    const got = errnoOf(error)
    if (got === null) throw error
    throw new SallyportError(
      'ERR_USAGE',
      `--out ${file}: cannot be written (${got}); name a file in a folder that you can write`,
      { file, got },
      { cause: error },
    )
  }
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}
