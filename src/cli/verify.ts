// `sallyport verify`: the battery and what people state, tried in the very sandbox of a profile's or a server's launches.
import { Option, type Command } from 'commander'
import { readAssertions } from '../config/assertion-file.ts'
import { type Host, thisHost } from '../config/host.ts'
import { SallyportError } from '../errors.ts'
import { inLanes } from '../lib/lanes.ts'
import { parseJson } from '../lib/parse-json.ts'
import { packageVersion } from '../lib/version.ts'
import type { Report, Reported } from '../verify/report/format.ts'
import { formats } from '../verify/report/formats.ts'
import { isGreen, overall } from '../verify/result.ts'
import type { NamedCall } from '../verify/server/choose-call.ts'
import { type DriverName, driversIn, examineHost } from '../sandbox/drivers.ts'
import { interruption } from './interruption.ts'
import { foreseeOut, replaceOut } from './out.ts'
import { hint, visible } from './output.ts'
import { collect } from './repeated.ts'
import { subjectsOf, type Verifiable } from './verify-subjects.ts'

interface VerifyFlags {
  readonly profile: readonly string[]
  readonly all?: boolean
  readonly server: readonly string[]
  readonly allServers?: boolean
  readonly call?: string
  readonly args?: string
  readonly driver?: DriverName
  readonly runtime?: string
  readonly format: keyof typeof formats
  readonly json?: boolean
  readonly out?: string
  readonly selfCheck?: boolean
  readonly strict?: boolean
  readonly tests: readonly string[]
  readonly config?: string
}

/** Exit status where something did not hold, or was not shown to. */
const verificationFailed = 4
/** How long this process may still be there once its report is written */
const lastMs = 2000

export function registerVerify(program: Command): void {
  program
    .command('verify')
    .description('try what profiles and servers promise, in the very sandboxes that servers get')
    .option('--profile <name>', 'a profile, by name; may be repeated', collect, [])
    .option('--all', 'every profile that can be found')
    .option('--server <name>', 'a server of the configuration, which is run; may be repeated', collect, [])
    .option('--all-servers', 'every enabled server of the configuration')
    .option('--call <tool>', 'call this tool of the one server, instead of what is known to change nothing')
    .option('--args <json>', 'its arguments, as one JSON object')
    .addOption(
      new Option(
        '--driver <driver>',
        'what makes the sandboxes of profiles; without it bubblewrap, and with --all whatever can here',
      ).choices(['bubblewrap', 'docker']),
    )
    .option(
      '--runtime <name>',
      'with --driver docker: the engine’s OCI runtime for the sandboxes of profiles',
    )
    .addOption(new Option('--format <format>', 'how to say it').choices(Object.keys(formats)).default('text'))
    .addOption(new Option('--json', 'the same as --format json').conflicts('format'))
    .option('--out <file>', 'write the report there, instead of to stdout')
    .option('--self-check', 'take each control out in turn, and hold every probe to going red')
    .option(
      '--strict',
      'fail what nothing on this machine holds, also where the profile asks for best effort',
    )
    .option('--tests <file>', 'assertions of your own; may be repeated', collect, [])
    .option('--config <file>', 'the configuration of the servers; profiles are looked for beside it, too')
    .action(verify)
}

async function verify(flags: VerifyFlags): Promise<void> {
  if (flags.runtime !== undefined && flags.driver !== 'docker')
    throw new SallyportError('ERR_USAGE', '--runtime: it is an engine’s; say --driver docker with it')
  const isOfProfiles = flags.all === true || flags.profile.length > 0
  if (flags.driver !== undefined && !isOfProfiles && (flags.allServers === true || flags.server.length > 0))
    throw new SallyportError(
      'ERR_USAGE',
      `--driver: got ${flags.driver}, and no profile; a server is tried under the driver of its own entry, so leave it out`,
    )
  const { out } = flags
  if (out !== undefined) await foreseeOut(out)
  const host = thisHost()
  const call = callOf(flags)
  using interrupted = interruption()
  // What is planted is everybody's to read, so that only a sandbox can be what shuts it, and nobody else's to write.
  const usual = process.umask(0o022)
  const { drivers, unusable } = await driversFor(flags, host)
  for (const { driver, why } of unusable) hint(`${driver} makes no sandbox here: ${visible(why)}`)
  const subjects = await subjectsOf({ ...flags, isAll: flags.all === true, call, drivers }, host)
  const stated = await Promise.all(flags.tests.map((file) => readAssertions(file, subjects)))
  const reported = await eachInTurn(subjects, async (subject, index): Promise<Reported> => {
    const name = `${visible(subject.server ?? subject.profile)} (${subject.driver})`
    const verification = await subject.verify({
      host,
      assertions: stated.flatMap((each) => each[index] ?? []),
      selfCheck: flags.selfCheck === true,
      strict: flags.strict === true,
      signal: interrupted.signal,
      onProgress: (stage) => hint(`${index + 1}/${subjects.length} ${name}: ${visible(stage)}`),
    })
    return { verification, placeOf: subject.placeOf }
  })
  interrupted[Symbol.dispose]()
  process.umask(usual)
  const report = formats[flags.json === true ? 'json' : flags.format]({
    version: packageVersion(),
    folder: process.cwd(),
    reported,
    unusable,
  })
  if (out === undefined) process.stdout.write(report)
  else await replaceOut(out, report, 0o666)
  const verdict = overall(reported.map(({ verification }) => verification))
  if (!isGreen(verdict)) process.exitCode = verificationFailed
  if (verdict === 'not-enforced')
    hint('something is held by nothing on this machine: see the report, and --strict, which fails it')
  // A sandbox that did not end when it was told to would keep this process, and end with it: the janitor takes the rest away.
  setTimeout(() => process.exit(), lastMs).unref()
}

/** With --all every driver that this user can launch with, and why any other can't; one that is named is tried, come what may. */
async function driversFor(
  { driver, all }: VerifyFlags,
  { env }: Host,
): Promise<{ readonly drivers: readonly DriverName[]; readonly unusable: Report['unusable'] }> {
  if (driver !== undefined || all !== true) return { drivers: [driver ?? 'bubblewrap'], unusable: [] }
  const here = driversIn(await examineHost(env))
  const unusable = here.flatMap(({ driver: name, why }) => (why === null ? [] : [{ driver: name, why }]))
  if (unusable.length < here.length)
    return { drivers: here.flatMap(({ driver: name, why }) => (why === null ? [name] : [])), unusable }
  throw new SallyportError(
    'ERR_SANDBOX_UNENFORCEABLE',
    `no driver makes a sandbox here: ${unusable.map(({ driver: name, why }) => `${name}: ${why}`).join('. ')}`,
  )
}

/** How many sandboxes' batteries run beside each other: making a container is mostly waiting for its engine. */
const atOnce: Readonly<Record<DriverName, number>> = { bubblewrap: 1, docker: 2 }

/** In the order of the subjects, whatever was through first. Nothing goes on when this has thrown. */
async function eachInTurn(
  subjects: readonly Verifiable[],
  verifyOne: (subject: Verifiable, index: number) => Promise<Reported>,
): Promise<readonly Reported[]> {
  const found = new Map<number, Reported>()
  const lanes = Object.entries(atOnce).map(([driver, count]) =>
    inLanes(
      [...subjects.entries()].filter(([, subject]) => subject.driver === driver),
      count,
      async ([index, subject]) => found.set(index, await verifyOne(subject, index)),
    ),
  )
  const failed = (await Promise.allSettled(lanes)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
  return [...subjects.keys()].flatMap((index) => found.get(index) ?? [])
}

function callOf({ call, args, server, allServers }: VerifyFlags): NamedCall | null {
  if (call === undefined) {
    if (args === undefined) return null
    throw new SallyportError('ERR_USAGE', '--args: there is no call; name a tool with --call')
  }
  if (server.length !== 1 || allServers === true)
    throw new SallyportError('ERR_USAGE', '--call: a tool is of one server; name just that with --server')
  const value = parsed(args ?? '{}')
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return { tool: call, args: { ...value } }
  throw new SallyportError(
    'ERR_USAGE',
    `--args: got ${(args ?? '').slice(0, 80)}, expected a JSON object such as '{"path":"/workspace"}'`,
  )
}

function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return null
  }
}
