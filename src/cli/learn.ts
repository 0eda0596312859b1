// `sallyport profile learn -- CMD ARGS`: watches a server at work, and drafts the least profile that it needed.
import { basename, join, resolve } from 'node:path'
import { Duplex } from 'node:stream'
import { Option, type Command } from 'commander'
import { thisHost } from '../config/host.ts'
import { isThere } from '../config/is-there.ts'
import { onNamed, outFile } from '../config/named-file.ts'
import { SallyportError } from '../errors.ts'
import type { Drive } from '../verify/learn/drive.ts'
import type { Learned } from '../verify/learn/learn.ts'
import { isGreen, type Verdict } from '../verify/result.ts'
import { interruption } from './interruption.ts'
import { replaceOut } from './out.ts'
import { hint, visible } from './output.ts'
import { counted } from '../lib/counted.ts'
import { visibleJson } from '../lib/visible-json.ts'
import { collect } from './repeated.ts'
import { parseTarget } from './target.ts'

interface LearnFlags {
  readonly drive?: string
  readonly stdio?: boolean
  readonly out?: string
  readonly name?: string
  readonly read: readonly string[]
  readonly write: readonly string[]
  readonly env: readonly string[]
  readonly allow: readonly string[]
  readonly network: 'none' | 'observe'
  readonly json?: boolean
}

/** Exit status where the draft is not proven, or does not hold what it promises. */
const verificationFailed = 4

/** Adds the act to the verb `profile`. */
export function registerLearn(profile: Command): void {
  profile
    .command('learn')
    .description('watch a server at work in a sandbox, and draft the least profile that it needed')
    .argument('<command>', 'the server’s program')
    .argument('[args...]', 'its arguments')
    .option(
      '--drive <file>',
      'what makes it work: calls, one a line, or a program that speaks MCP as its host',
    )
    .option('--stdio', 'your own host makes it work: this is its stdio server')
    .option('-o, --out <file>', 'write the draft there, instead of to stdout')
    .option('--name <name>', 'name of the draft: that of the file, or learned, unless said')
    .option('--read <path>', 'something that it may be shown; may be repeated', collect, [])
    .option('--write <path>', 'a folder that it may write to, in copies; may be repeated', collect, [])
    .option('--env <name[=value]>', 'a variable that it has; may be repeated', collect, [])
    .option('--allow <host:port>', 'a target that it may reach; may be repeated', collect, [])
    .addOption(
      new Option('--network <mode>', 'whether names and addresses that it asks for are noted')
        .choices(['none', 'observe'])
        .default('observe'),
    )
    .addOption(
      new Option('--driver <driver>', 'what makes the sandbox: bubblewrap alone').argParser(parseDriver),
    )
    .option('--json', 'print JSON')
    .passThroughOptions()
    .action(learn)
}

async function learn(command: string, args: readonly string[], flags: LearnFlags): Promise<void> {
  using interrupted = interruption()
  // Of what is written for the proof a part is everybody's to read, and a draft that others could write is refused.
  process.umask(0o022)
  const { learnProfile } = await import('../verify/learn/learn.ts')
  await judgeFlags(flags)
  await judgeName(nameFor(flags))
  const drive = await driveFor(flags)
  const { out } = flags
  const save = async (text: string): Promise<void> => {
    // A host ends its servers when it goes; what it has made this one do is still to be proven.
    interrupted.ignoreTermination()
    if (out !== undefined) await replaceOut(out, text, 0o600)
  }
  const variables = flags.env.map(parseVariable)
  const learned = await learnProfile({
    host: thisHost(),
    command,
    args,
    name: nameFor(flags),
    drive,
    read: flags.read.map((path) => resolve(path)),
    write: flags.write.map((path) => resolve(path)),
    allow: flags.allow.map((target) => ({
      ...parseTarget(target, '--allow'),
      address: null,
      private: false,
    })),
    network: flags.network,
    pass: variables.flatMap(({ name, value }) => (value === null ? [name] : [])),
    set: Object.fromEntries(variables.flatMap(({ name, value }) => (value === null ? [] : [[name, value]]))),
    signal: interrupted.signal,
    onProgress: (stage) => hint(visible(stage)),
    onStderr: (line) => hint(`  ${visible(line)}`),
    onUnproven: save,
  })
  interrupted[Symbol.dispose]()
  if (out !== undefined) await replaceOut(out, learned.text, 0o600)
  if (flags.json === true) process.stdout.write(`${visibleJson(asJson(learned), 2)}\n`)
  else if (out === undefined) process.stdout.write(learned.text)
  for (const line of summaryOf(learned)) hint(visible(line))
  process.exitCode = isGreen(verdictOf(learned) ?? 'error') ? 0 : verificationFailed
}

/** There is one that a server can be watched in. Whoever asks for another is told how its profile is learned all the same. */
function parseDriver(driver: string): string {
  if (driver === 'bubblewrap') return driver
  throw new SallyportError(
    'ERR_USAGE',
    `--driver ${visible(driver.slice(0, 40))}: a server is watched in bubblewrap's sandbox alone, since nobody can watch what an engine started; learn it without --driver from the same files, then prove the draft there: sallyport verify --driver docker --profile NAME`,
  )
}

async function judgeFlags({ drive, stdio, out, json, name }: LearnFlags): Promise<void> {
  const wrong =
    drive !== undefined && stdio === true
      ? '--drive and --stdio each say who drives; choose one'
      : stdio === true && out === undefined
        ? '--stdio leaves stdout to your host; name a file for the draft with --out'
        : stdio === true && json === true
          ? '--stdio leaves stdout to your host; leave --json out'
          : name !== undefined && !/^[A-Za-z0-9_.-]{1,128}$/.test(name)
            ? `--name: got ${JSON.stringify(name)}, expected letters, digits, _, . and -`
            : out !== undefined && (await onNamed(outFile(out), () => isThere(out)))
              ? `--out ${out}: is there already; remove it, or name another`
              : null
  if (wrong !== null) throw new SallyportError('ERR_USAGE', wrong)
}

/** Said now rather than when all of it was watched. */
async function judgeName(name: string): Promise<void> {
  const { shippedFolder } = await import('../config/profile-layers.ts')
  if (await isThere(join(shippedFolder, `${name}.yaml`)))
    throw new SallyportError(
      'ERR_USAGE',
      `the draft would be called ${name}, as a shipped profile is; choose another with --name, or with --out`,
    )
}

async function driveFor({ drive, stdio }: LearnFlags): Promise<Drive> {
  const { briefDrive, hostDrive, readDrive } = await import('../verify/learn/drive.ts')
  if (drive !== undefined) return readDrive(drive)
  if (stdio !== true) return briefDrive
  return hostDrive(Duplex.from({ readable: process.stdin, writable: process.stdout }))
}

const nameFor = ({ name, out }: LearnFlags): string =>
  name ?? (out === undefined ? 'learned' : basename(out).replace(/\.(yaml|yml|json)$/, ''))

function parseVariable(written: string): { readonly name: string; readonly value: string | null } {
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)(?:=(.*))?$/s.exec(written) ?? []
  if (name === undefined)
    throw new SallyportError(
      'ERR_USAGE',
      `--env: got ${JSON.stringify(written.slice(0, 80))}, expected NAME, or NAME=VALUE`,
    )
  return { name, value: value ?? null }
}

function summaryOf({ proof, verification, withheld, observed }: Learned): readonly string[] {
  const { holds, requests, same, failed, needed, dropped, differences } = proof
  return [
    holds
      ? `proven: ${counted(requests, 'request passes', 'requests pass')} under the draft, ${same} with the same answer`
      : `not proven: the drive does not pass`,
    ...failed.map((each) => `  failed when it was observed, so what it needs is not learned: ${each}`),
    ...differences.map((each) => `  ${each}`),
    ...(holds
      ? [
          `${counted(needed.length, 'grant was', 'grants were each')} tried to go without, and ${needed.length === 1 ? 'is' : 'are'} needed`,
        ]
      : []),
    ...dropped.map((each) => `  not needed, and not in the draft: ${each}`),
    ...(observed.isCut ? ['it asked for more than is kept, so the draft may lack something'] : []),
    ...(withheld.length === 0
      ? []
      : [
          `${counted(withheld.length, 'thing was', 'things were')} asked for and not granted: see the end of the draft`,
        ]),
    typeof verification === 'string' ? `not verified: ${verification}` : `verify: ${verification.verdict}`,
  ]
}

const verdictOf = ({ verification }: Learned): Verdict | null =>
  typeof verification === 'string' ? null : verification.verdict

const asJson = (learned: Learned): unknown => {
  const { text, proof, observed, calls, withheld } = learned
  return {
    profile: text,
    proof,
    verdict: verdictOf(learned),
    observed: {
      programs: observed.started,
      system_calls: calls,
      memory_bytes: observed.memoryBytes,
      threads: observed.threads,
      open_files: observed.descriptors,
      scratch_bytes: observed.scratchBytes,
      is_cut: observed.isCut,
    },
    withheld,
  }
}
