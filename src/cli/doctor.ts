// `sallyport doctor`: what this machine can enforce, what it can't, and the command that mends it.
import type { Command } from 'commander'
import { connect } from '../client/client.ts'
import { thisHost } from '../config/host.ts'
import { runtimeDirectory } from '../config/paths.ts'
import { SallyportError } from '../errors.ts'
import { packageVersion } from '../lib/version.ts'
import type { Hello } from '../rpc/protocol.ts'
import { type Diagnosis, withDaemonLimits } from '../sandbox/fingerprint/diagnose.ts'
import { driversIn, examineHost } from '../sandbox/drivers.ts'
import { paint, printFields, printJson, printTable, visible } from './output.ts'
import type { Cell } from './output.ts'
import { reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

/** A diagnosis in the words of the control protocol. */
interface ControlView extends Pick<Diagnosis, 'control' | 'ok' | 'cause' | 'mend'> {
  /** Without it no server can be launched by the driver that needs it */
  readonly is_fatal: boolean
  readonly enforced_by: string | null
}

type Daemon = Pick<Hello, 'version' | 'pid' | 'separation'> & Partial<Pick<Hello, 'limits'>>

interface Report {
  readonly version: string
  readonly node: string
  readonly controls: readonly ControlView[]
  readonly daemon: Daemon | null
  /** Why no daemon answered; null where one did */
  readonly daemon_problem: string | null
}

export function registerDoctor(program: Command): void {
  reaching(program.command('doctor'))
    .description('say what this machine can enforce, and what would mend the rest')
    .action(async (options: ReachOptions) => {
      const at = await placeOf(options)
      const [here, asked] = [await examineHost(thisHost().env), await ask(at)]
      const { daemon } = asked
      // A daemon of a version before this says nothing of its limits.
      const controls = daemon?.limits === undefined ? here : withDaemonLimits(here, daemon.limits)
      const [version, node] = [packageVersion(), process.versions.node]
      const report: Report = { version, node, controls: controls.map(viewOf), ...asked }
      if (options.json === true) printJson(report)
      else print(report, controls)
      if (controls.some(({ ok, isFatal }) => isFatal && !ok)) process.exitCode = 1
    })
}

/** Where a daemon is asked. A slip of the command line is refused as by any verb; what the environment says wrongly is diagnosed. */
async function placeOf({ runtime }: ReachOptions): Promise<string | SallyportError> {
  try {
    return await runtimeDirectory(runtime, thisHost())
  } catch (thrown) {
    const error = SallyportError.from(thrown)
    if (error.code === 'ERR_CONFIG_VARIABLE') return error
    throw error
  }
}

async function ask(at: string | SallyportError): Promise<Pick<Report, 'daemon' | 'daemon_problem'>> {
  try {
    if (typeof at !== 'string') throw at
    await using client = await connect({ at: { runtimeDir: at } })
    const { version, pid, separation, limits } = client.hello
    return { daemon: { version, pid, separation, limits }, daemon_problem: null }
  } catch (error) {
    return { daemon: null, daemon_problem: SallyportError.from(error).message }
  }
}

const viewOf = ({ control, ok, isFatal, enforcedBy, cause, mend }: Diagnosis): ControlView => ({
  control,
  ok,
  is_fatal: isFatal,
  enforced_by: enforcedBy,
  cause,
  mend,
})

function print({ version, node, daemon, daemon_problem }: Report, controls: readonly Diagnosis[]): void {
  printTable(['CONTROL', '', 'ENFORCED BY', 'WHY NOT'], controls.map(row))
  // One command often mends several controls: it is said once, for all of them.
  const mends = Map.groupBy(controls, ({ mend }) => mend)
  for (const [mend, mended] of mends) {
    if (mend === null) continue
    const names = mended.map(({ control }) => control).join(', ')
    process.stdout.write(`\n${paint('bold', names)}: ${visible(mend)}\n`)
  }
  process.stdout.write('\n')
  printFields([
    ['sallyport', `${version} on node ${node}`],
    ['drivers', driversOf(controls)],
    ['daemon', daemon === null ? (daemon_problem ?? '') : `${daemon.version}, pid ${daemon.pid}`],
    ['separation', daemon === null ? 'unknown until a daemon runs' : separationOf(daemon.separation)],
  ])
}

function driversOf(controls: readonly Diagnosis[]): string {
  const usable = driversIn(controls).filter(({ why }) => why === null)
  return usable.length === 0
    ? 'none: no server can be launched'
    : usable.map(({ driver }) => driver).join(', ')
}

function row({ control, ok, isFatal, enforcedBy, cause }: Diagnosis): (string | Cell)[] {
  const bad: Cell = isFatal ? { text: 'not', style: 'red' } : { text: 'weak', style: 'yellow' }
  return [control, ok ? { text: 'ok', style: 'green' } : bad, enforcedBy ?? '–', cause ?? '']
}

function separationOf(separation: Hello['separation']): string {
  return separation === 'full'
    ? 'full: no host shares a uid with the daemon or a sandbox'
    : 'none: a host of the daemon’s uid could read its memory; run it as its own user, with host_group'
}
