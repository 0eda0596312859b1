// One server's entry: paths absolute, variables resolved, and what it asks for that this version cannot enforce.
import { basename, resolve } from 'node:path'
import { refusedFamily } from '../lib/environment-families.ts'
import { secretShape } from '../lib/secret-shape.ts'
import type { Step } from '../schema/problem.ts'
import type { ServerSettings } from '../schema/settings.ts'
import type { Config } from '../schema/types.gen.ts'
import { checkEgress, grantOf } from './egress.ts'
import { checkInjections, injectionOf } from './injection.ts'
import type { Layer } from './layer.ts'
import { issue, type Issue } from './refusal.ts'
import { resolveVariable, variableText } from './variable.ts'

type Entry = Config['servers'][string]

/** Calls of one server that a principal may have at once where each is a process with memory of its own */
const mostProcesses = 64

export interface ServerContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly mode: string
  /** What confines it where its entry does not say */
  readonly driver: ServerSettings['driver']
  /** Names of the credentials that are configured */
  readonly sources: ReadonlySet<string>
}

export interface BuiltServer {
  readonly server: ServerSettings
  readonly issues: readonly Issue[]
}

/** Builds a server's settings. The variables of one that is disabled are not looked up: it will not run. */
export function buildServer(name: string, entry: Entry, layer: Layer, context: ServerContext): BuiltServer {
  const at = (...steps: Step[]): Step[] => ['servers', name, ...steps]
  const absolute = (path: string): string => resolve(layer.directory, path)
  const disabledReason = whyDisabled(name, entry, context.mode)
  const environment = buildEnvironment(entry, layer, at('env'), disabledReason === null ? context.env : null)
  const { output, timeouts, stop, restart, elicitation, tools } = entry
  const driver = entry.driver ?? context.driver
  const server: ServerSettings = {
    name,
    scope: layer.scope,
    file: basename(layer.document.path),
    directory: layer.directory,
    command: entry.command,
    args: entry.args,
    package:
      entry.package === null
        ? null
        : {
            source: absolute(entry.package.source),
            target: entry.package.target,
            with: entry.package.with.map(absolute),
            digest: entry.package.digest,
          },
    version: entry.version,
    enabled: disabledReason === null,
    disabledReason,
    tags: entry.tags,
    justification: entry.justification,
    profile: entry.profile,
    mounts: entry.mounts.map((mount) => ({ ...mount, source: absolute(mount.source) })),
    env: environment.values,
    envOverride: environment.overrides,
    driver,
    image: entry.image,
    runtime: entry.runtime,
    cwd: entry.cwd,
    egress: entry.egress.map(grantOf),
    egressWhen: entry.egress_when,
    credentials: entry.credentials.map((injection) => injectionOf(injection, absolute)),
    instance: entry.instance,
    maxConcurrent: entry.max_concurrent,
    pool: { size: entry.pool.size, ageMs: entry.pool.age_ms },
    trust: entry.trust,
    surface: entry.surface,
    acceptance: entry.acceptance,
    declaration: null, // a file of its own, read once the server is known
    declaredVersion: null,
    tools: { allow: tools.allow, deny: tools.deny, readOnly: tools.read_only },
    start: entry.start,
    elicitation: {
      enabled: elicitation.enabled,
      timeoutMs: elicitation.timeout_ms,
      queue: elicitation.queue,
    },
    sampling: entry.sampling,
    roots: entry.roots,
    output: {
      resultBytes: output.result_bytes,
      lineBytes: output.line_bytes,
      stderrBytes: output.stderr_bytes,
    },
    timeouts: { initializeMs: timeouts.initialize_ms, callMs: timeouts.call_ms, idleMs: timeouts.idle_ms },
    stop: { eofMs: stop.eof_ms, termMs: stop.term_ms },
    restart: {
      scheduleS: restart.schedule_s,
      jitter: restart.jitter,
      steadyS: restart.steady_s,
      startAttempts: restart.start_attempts,
      storm: restart.storm,
    },
    runAs: entry.run_as,
    unenforceable: unenforceable({ ...entry, driver }),
  }
  const issues = [
    ...environment.issues,
    ...checkPool(name, entry, layer, at('pool')),
    ...checkConcurrent(entry, layer, at('max_concurrent')),
    ...checkArguments(entry, layer, at('args')),
    ...checkEgress(entry, layer.document, at('egress')),
    ...checkInjections(entry, context.sources, layer.document, at('credentials')),
  ]
  return { server, issues }
}

function whyDisabled(name: string, { enabled, tags }: Entry, mode: string): string | null {
  if (!enabled) return `server ${name} is disabled by its entry`
  if (tags.length === 0 || tags.includes(mode)) return null
  return `server ${name} runs in the modes ${tags.join(', ')}, and the mode is ${mode}`
}

/** What this version loads and cannot hold yet; a launch of the server names it and is refused. */
function unenforceable(entry: Pick<Entry, 'driver' | 'image' | 'runtime'>): readonly string[] {
  const asked: readonly (readonly [boolean, string])[] = [
    [entry.image !== null && entry.driver !== 'docker', 'image without driver: docker'],
    [entry.runtime !== null && entry.driver !== 'docker', 'runtime without driver: docker'],
  ]
  return asked.filter(([isAsked]) => isAsked).map(([, feature]) => feature)
}

interface BuiltEnvironment {
  readonly values: Readonly<Record<string, string>>
  readonly overrides: Readonly<Record<string, string>>
  readonly issues: readonly Issue[]
}

function buildEnvironment(
  entry: Entry,
  { document }: Layer,
  at: readonly Step[],
  env: ServerContext['env'] | null,
): BuiltEnvironment {
  const values: [string, string][] = []
  const overrides: [string, string][] = []
  const issues: Issue[] = []
  for (const [name, written] of Object.entries(entry.env)) {
    const text = variableText(written)
    const place = [...at, name]
    if (text.override !== null) overrides.push([name, text.override])
    const refuse = (variable: string, family: string): void => {
      const said = {
        got: variable,
        expected: `no variable of the family ${family}`,
        mend: 'remove it, or write {value, override: <the reason>}',
      }
      issues.push(issue('ERR_ENVIRONMENT_REFUSED', document, place, said))
    }
    const family = text.override === null ? refusedFamily(name) : null
    if (family !== null) refuse(name, family)
    if (env === null) continue
    const resolved = resolveVariable(text, env)
    switch (resolved.state) {
      case 'value':
        values.push([name, resolved.value])
        break
      case 'refused':
        if (family === null) refuse(`\${env:${resolved.name}}`, resolved.family)
        break
      case 'unset':
        issues.push(
          issue('ERR_CONFIG_VARIABLE', document, place, {
            got: `the unset variable ${resolved.name}`,
            expected: 'a variable that is set',
            mend: `set ${resolved.name} for the daemon, or write {value, default}`,
          }),
        )
        break
      case 'malformed':
        issues.push(
          issue('ERR_CONFIG_INVALID', document, place, {
            got: 'a ${ that begins no ${env:NAME}',
            expected: '${env:NAME}',
            mend: 'write $${ for a plain ${',
          }),
        )
        break
    }
  }
  return { values: Object.fromEntries(values), overrides: Object.fromEntries(overrides), issues }
}

/** What waits for calls would wait for ever where calls have no processes of their own. */
function checkPool(
  name: string,
  { instance }: Entry,
  { document }: Layer,
  at: readonly Step[],
): readonly Issue[] {
  const { servers } = document.value as { servers?: Record<string, object> }
  if (instance === 'call' || !Object.hasOwn(servers?.[name] ?? {}, 'pool')) return []
  const said = {
    got: `pool with instance: ${instance}`,
    expected: 'a pool only with instance: call',
    mend: 'say instance: call, or remove pool',
  }
  return [issue('ERR_CONFIG_INVALID', document, at, said)]
}

function checkConcurrent(
  { instance, max_concurrent: most }: Entry,
  { document }: Layer,
  at: readonly Step[],
): readonly Issue[] {
  if (instance !== 'call' || most === null || most <= mostProcesses) return []
  const said = {
    got: `${most} with instance: call`,
    expected: `at most ${mostProcesses}, since each call has a process of its own`,
    mend: `say ${mostProcesses} or less, or another instance`,
  }
  return [issue('ERR_CONFIG_INVALID', document, at, said)]
}

/** Arguments can be seen by every user of the machine, so a secret among them is one no longer. */
function checkArguments(entry: Entry, { document }: Layer, at: readonly Step[]): readonly Issue[] {
  return entry.args.flatMap((argument, index) => {
    const shape = secretShape(argument)
    if (shape === null) return []
    const said = {
      got: `what looks like ${shape}`,
      expected: 'arguments without secrets, since every user of the machine can read them',
      mend: 'hand it over in env, by reference',
    }
    return [issue('ERR_CONFIG_INVALID', document, [...at, index], said)]
  })
}
