// A real server, run as any other and looked at from outside: started, introduced, listed, spoken to, and gone.
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { type Duplex, duplexPair } from 'node:stream'
import { join } from 'node:path'
import type { Host } from '../../config/host.ts'
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import type { SandboxProcess } from '../../sandbox/driver.ts'
import type { Settings } from '../../schema/settings.ts'
import type { Canaries } from '../lab/canaries.ts'
import type { Inspection } from '../result.ts'
import type { KernelInside } from '../lab/lab.ts'
import { ampleMs } from '../lab/patience.ts'
import type { Subject } from '../subject.ts'
import { chooseCall, type NamedCall } from './choose-call.ts'
import { containerGroup, givenDemands, placeDemands, statusDemands } from './demands.ts'
import { fileDemands } from './files-demands.ts'
import { gvisorDemands } from './gvisor-demands.ts'
import { look, type Sight } from './look.ts'
import { attempt, isRead, namespaceKinds, processesOf } from './processes.ts'
import { called, introduced, type Launched, left, started, toolsListed, unreached, unseen } from './steps.ts'
import { Talk } from './talk.ts'

/** Runs the server of these settings on a stream, apart from every daemon; resolves when nothing of it is left. */
export type RunServer = (
  given: {
    readonly settings: Settings
    readonly name: string
    readonly host: Host
    readonly stream: Duplex
    /** Whatever it keeps, it keeps there */
    readonly stateDir: string
    readonly onStderr: (line: string) => void
    readonly watch: {
      launched(process: SandboxProcess): void
      listed(tools: ReadonlyMap<string, unknown>): void
    }
  },
  waiting: { readonly signal: AbortSignal },
) => Promise<{ readonly status: number; readonly reason: string | null }>

export interface RealServer {
  readonly host: Host
  readonly run: RunServer
  readonly call: NamedCall | null
}

export interface InspectedServer {
  readonly inspections: readonly Inspection[]
  /** All tools that it lists, whether policy shows them or not; null where it did not come to a list */
  readonly listed: ReadonlyMap<string, unknown> | null
}

/** Never throws but when the signal is aborted: what goes wrong is an inspection that says so, and so is what was not reached. */
export const inspectServer = async (
  { settings, server }: Subject,
  real: RealServer,
  {
    canaries,
    kernel,
    signal,
  }: { readonly canaries: Canaries; readonly kernel: KernelInside; readonly signal: AbortSignal },
): Promise<InspectedServer> => {
  const [mine, theirs] = duplexPair()
  const stop = new AbortController()
  const talk = new Talk(mine)
  const seen: { launched: Launched[]; listed: ReadonlyMap<string, unknown> | null } = {
    launched: [],
    listed: null,
  }
  const complaints: string[] = []
  const ended = real
    .run(
      {
        settings: real.call === null ? settings : allowing(settings, server.name, real.call),
        name: server.name,
        host: { ...real.host, env: { ...real.host.env, ...canaries.variables } },
        stream: theirs,
        stateDir: join(canaries.state, 'server'),
        onStderr: (line) => void (complaints.length < 5 && complaints.push(line.slice(0, 200))),
        watch: {
          launched: (process) => {
            seen.launched.push({ process, groups: attempt(() => groupsOf(process, server.driver)) })
          },
          listed: (tools) => (seen.listed = tools),
        },
      },
      { signal: AbortSignal.any([signal, stop.signal]) },
    )
    .catch((error: unknown) => SallyportError.from(error))
    .finally(() => mine.destroy())
  const inspections: Inspection[] = []
  const { callMs, initializeMs } = server.timeouts
  const waiting = (ms: number): { ms: number; signal: AbortSignal } => ({ ms, signal })
  // The one that answers: what a call has for itself comes later, and ends with it.
  let answering: SandboxProcess | null = null
  try {
    const hello = await talk.ask(
      'initialize',
      {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'sallyport-verify', version: '1' },
      },
      waiting(startMs + initializeMs),
    )
    answering = seen.launched.at(-1)?.process ?? null
    inspections.push(started(answering), introduced(hello))
    talk.tell('notifications/initialized')
    const list = await talk.ask('tools/list', {}, waiting(callMs))
    inspections.push(toolsListed(list, seen.listed))
    const choice = chooseCall(server, settings, real.call)
    const answer = await talk.ask(choice.method, choice.params, waiting(callMs))
    inspections.push(called(choice, answer))
  } catch (error) {
    signal.throwIfAborted()
    inspections.push(...unreached(inspections, SallyportError.from(error).message, complaints))
  }
  const process = answering ?? seen.launched.at(-1)?.process ?? null
  if (process !== null) {
    const looked = attempt(() => lookAt(process, server, canaries, kernel))
    inspections.push(...(isRead(looked) ? looked : [unseen(looked)]))
  }
  mine.end()
  const goneMs = server.stop.eofMs + server.stop.termMs + ampleMs
  const late = (): Error => new Error(`it was not gone ${goneMs} ms after it was told to end`)
  const gone = await within(ended, goneMs, late).catch((error: unknown) => {
    stop.abort()
    return SallyportError.from(error)
  })
  await ended
  signal.throwIfAborted()
  inspections.push(await left(seen.launched, gone))
  return { inspections, listed: seen.listed }
}

const startMs = 120_000

/** The operator names the call, and so may make it: as a rule for just that tool, which no deny yields to. */
const allowing = (settings: Settings, server: string, { tool }: NamedCall): Settings => ({
  ...settings,
  rules: [
    { permission: `mcp:${server}:${tool}`, action: 'allow', where: {}, origin: '--call' },
    ...settings.rules,
  ],
})

/** Folders of the control groups that are the sandbox's own, wherever the host has its hierarchies. */
const groupsOf = (
  { initPid, spec: { instance } }: SandboxProcess,
  driver: Subject['server']['driver'],
): readonly string[] => {
  const [init] = processesOf(initPid)
  if (init === undefined) return []
  if (!isRead(init.groups)) throw Object.assign(new Error('unread'), { code: init.groups.unread })
  return init.groups
    .trim()
    .split('\n')
    .filter((line) => (driver === 'docker' ? containerGroup.test(line) : line.endsWith(`/${instance}`)))
    .flatMap((line) => {
      const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
      return [join('/sys/fs/cgroup', path), join('/sys/fs/cgroup', controllers, path)]
    })
    .filter((path) => existsSync(path))
}

const lookAt = (
  { spec, enforcedBy, initPid }: SandboxProcess,
  { credentials, driver }: Subject['server'],
  { word }: Canaries,
  kernel: KernelInside,
): readonly Inspection[] => {
  const sight: Sight = {
    spec,
    driver,
    enforcedBy,
    processes: processesOf(initPid),
    ownNamespaces: Object.fromEntries(
      namespaceKinds.map((kind) => [kind, readlinkSync(`/proc/self/ns/${kind}`)]),
    ),
    ownGroups: readFileSync('/proc/self/cgroup', 'utf8'),
    ownFilters: Number(
      /^Seccomp_filters:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0,
    ),
    secretNames: credentials.flatMap(({ inject, as }) => (inject === 'meta' ? [] : [as])),
    word,
  }
  const demands =
    kernel === 'gvisor' ? gvisorDemands : [...placeDemands, ...statusDemands, ...fileDemands, ...givenDemands]
  return demands.map((demand) => look(demand, sight))
}
