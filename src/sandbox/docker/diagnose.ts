// What the container engine means for the docker driver: for each control what holds it, or why nothing does and what mends it.
import { existsSync } from 'node:fs'
import { SallyportError } from '../../errors.ts'
import { newDaemonId } from '../../lib/ids.ts'
import { type Diagnosis, onlyBubblewrap } from '../fingerprint/diagnose.ts'
import type { EngineInfo } from './answers.ts'
import { describeEndpoint, type Endpoint, findEndpoint } from './endpoint.ts'
import { type Engine, openEngine } from './engine.ts'
import { isGvisor, judgeGvisor } from './gvisor.ts'
import { judgeEngine, judgePlace } from './host.ts'
import { requireSameFiles } from './look.ts'

type Row = Diagnosis['control']

const answerMs = 5_000

/**
 * Asks the engine that the environment names; an empty list where none is named and none is installed, since nothing needs
 * one. With the path of init it is also asked whether it has the same files. Never fatal: a server in a bubblewrap sandbox needs none of it.
 */
export const diagnoseEngine = async (
  environment: Readonly<Record<string, string | undefined>>,
  initPath: string | null = null,
): Promise<readonly Diagnosis[]> => {
  let endpoint: Endpoint
  try {
    endpoint = findEndpoint(environment)
    if (endpoint.from === 'the usual socket' && endpoint.kind === 'unix' && !existsSync(endpoint.socketPath))
      return []
  } catch (error) {
    return [weak('container engine', error)]
  }
  try {
    using engine = await openEngine(endpoint, environment)
    const rows = diagnoseInfo(endpoint, await engine.info({ ms: answerMs }))
    return initPath === null ? rows : await withSameFiles(rows, engine, initPath)
  } catch (error) {
    return [weak('container engine', error)]
  }
}

// Only an engine that is judged to be here is asked to make a container.
const withSameFiles = async (
  rows: readonly Diagnosis[],
  engine: Engine,
  initPath: string,
): Promise<readonly Diagnosis[]> => {
  if (!rows.some(({ control, ok }) => control === 'containers' && ok)) return rows
  try {
    await requireSameFiles({ engine, daemon: newDaemonId() }, [initPath])
    return rows
  } catch (error) {
    return rows.map((row) => (row.control === 'containers' ? weak('containers', error) : row))
  }
}

/**
 * The rows of this machine and of its engine together. Where the engine can hold containers, what only bubblewrap needs is
 * not fatal: `driver: docker` does without. Pure.
 */
export const withEngine = (
  machine: readonly Diagnosis[],
  engine: readonly Diagnosis[],
): readonly Diagnosis[] => {
  const hasContainers = engine.some(({ control, ok }) => control === 'containers' && ok)
  const rows = machine.map((row) =>
    hasContainers && onlyBubblewrap.has(row.control) ? { ...row, isFatal: false } : row,
  )
  return [...rows, ...engine]
}

/** Explains what an engine says of itself, to a daemon of root or another. */
export const diagnoseInfo = (
  endpoint: Endpoint,
  info: EngineInfo,
  isRoot = process.geteuid?.() === 0,
): readonly Diagnosis[] => [
  held('container engine', `${info.ServerVersion} at ${describeEndpoint(endpoint)}, by ${endpoint.from}`),
  judged('containers', containersBy(info, isRoot), () => {
    judgePlace(endpoint, info)
    judgeEngine(info)
  }),
  limitsRow(info),
  ...runtimeRows(info),
]

// To another than root the kernel does not tell which file a container's first process is.
const containersBy = ({ Driver, KernelVersion }: EngineInfo, isRoot: boolean): string => {
  const first = isRoot ? 'PID 1 compared with init’s file' : 'PID 1 not compared: only a daemon of root can'
  return `seccomp, ${Driver}, no capabilities, kernel ${KernelVersion}, ${first}`
}

const limitsRow = (info: EngineInfo): Diagnosis => {
  const can = { memory: info.MemoryLimit, pids: info.PidsLimit, cpu: info.CpuCfsQuota }
  const missing = Object.entries(can).flatMap(([name, isHeld]) => (isHeld ? [] : [name]))
  const groups = `cgroup v${info.CgroupVersion ?? '1'} (${info.CgroupDriver})`
  if (missing.length === 0) return held('container limits', groups)
  const what = `the engine cannot limit ${missing.join(', ')} with ${groups}`
  return weak('container limits', new SallyportError('ERR_SANDBOX_UNENFORCEABLE', `${what}; ${limitsMend}`))
}

const limitsMend =
  'mount these controllers for it (cgroup v2 with systemd delegates them), or set limits.enforcement to best-effort'

const runtimeRows = (info: EngineInfo): readonly Diagnosis[] =>
  Object.keys(info.Runtimes)
    .filter((name) => isGvisor(name, info))
    .map((name) => judged('gVisor', gvisorBy(name), () => judgeGvisor(name, info, 'none')))

// What differs under it is what nobody should find out by surprise.
const gvisorBy = (name: string): string =>
  `runtime: ${name}; PID 1 not compared, without network.mode: allowlist, mounts proven from outside, limits of memory and pids on gVisor itself`

const judged = (control: Row, by: string | null, judge: () => void): Diagnosis => {
  try {
    judge()
    return held(control, by)
  } catch (error) {
    return weak(control, error)
  }
}

const held = (control: Row, enforcedBy: string | null): Diagnosis => ({
  control,
  ok: true,
  isFatal: false,
  enforcedBy,
  cause: null,
  mend: null,
})

// Our refusals end with what to do, after a semicolon.
const weak = (control: Row, error: unknown): Diagnosis => {
  const [, cause, mend] = /^(.*?)(?:; ([^;]*))?$/s.exec(SallyportError.from(error).message) ?? []
  return { control, ok: false, isFatal: false, enforcedBy: null, cause: cause ?? null, mend: mend ?? null }
}
