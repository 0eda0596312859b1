// Settings, profile and server as the config would give them, with whatever a test wants different.
import { statSync } from 'node:fs'
import { newInstanceId } from '../../src/lib/ids.ts'
import type { AllowedCommand, ProfileSettings, ServerSettings, Settings } from '../../src/schema/settings.ts'
import { Registrations } from '../../src/sandbox/registrations.ts'
import { buildEnvironment, type OverriddenVariable } from '../../src/sandbox/environment.ts'
import { planFilesystem } from '../../src/sandbox/mounts/filesystem.ts'
import { type HostFacts, resolveServer, settleSpec } from '../../src/sandbox/resolve.ts'
import type { SandboxSpec } from '../../src/sandbox/spec.ts'

const uid = process.getuid?.() ?? -1
const gid = process.getgid?.() ?? -1

/** Whose word tests take: their own, or as root that of whoever owns the clone and its node_modules. */
export const trust = { uid: uid === 0 ? statSync(process.execPath).uid : uid }

/** An allowed command that is looked up. */
export const allowed = (
  name: string,
  path: string | null = null,
  interpreter: string | null = null,
): AllowedCommand => ({
  name,
  path,
  interpreter,
})

/** The parts of a config that a launch reads. */
export const settingsOf = (
  more: Partial<Settings> = {},
): Pick<Settings, 'allowedCommands' | 'commandPath' | 'interpreterOptions'> => ({
  allowedCommands: [allowed('node', process.execPath), allowed('cat'), allowed('sh')],
  commandPath: ['/usr/local/bin', '/usr/bin'],
  interpreterOptions: {},
  ...more,
})

/** A server that runs `cat` and has nothing. */
export const serverOf = (more: Partial<ServerSettings> = {}): ServerSettings => ({
  name: 'probe',
  scope: 'file',
  file: 'sallyport.yaml',
  directory: '/',
  command: 'cat',
  args: [],
  package: null,
  version: '1.0.0',
  enabled: true,
  disabledReason: null,
  tags: [],
  justification: '',
  profile: 'workspace-write',
  mounts: [],
  env: {},
  envOverride: {},
  cwd: null,
  egress: [],
  egressWhen: 'always',
  credentials: [],
  instance: 'session',
  maxConcurrent: null,
  pool: { size: 2, ageMs: 300_000 },
  trust: 'trusted',
  surface: 'static',
  declaration: null,
  declaredVersion: null,
  acceptance: 'first-use',
  tools: { allow: [], deny: [], readOnly: [] },
  start: 'lazy',
  elicitation: { enabled: false, timeoutMs: 120_000, queue: 16 },
  sampling: false,
  roots: 'mounts',
  output: { resultBytes: 1_048_576, lineBytes: 10_485_760, stderrBytes: 1_048_576 },
  timeouts: { initializeMs: 60_000, callMs: 30_000, idleMs: 600_000 },
  stop: { eofMs: 200, termMs: 300 },
  restart: { scheduleS: [1], jitter: 0.2, steadyS: 60, startAttempts: 3, storm: 10 },
  runAs: null,
  driver: 'bubblewrap',
  image: null,
  runtime: null,
  unenforceable: [],
  ...more,
})

/** A profile that grants /usr, and server mounts up to writing. */
export const profileOf = ({
  filesystem,
  ...more
}: Partial<Omit<ProfileSettings, 'filesystem'>> & {
  readonly filesystem?: Partial<ProfileSettings['filesystem']>
} = {}): ProfileSettings => ({
  name: 'workspace-write',
  description: '',
  path: '/profiles/workspace-write.yaml',
  layers: ['workspace-write'],
  filesystem: {
    read: [{ path: '/usr', reason: 'language runtimes' }],
    write: [],
    mounts: 'write',
    tmpBytes: 16_777_216,
    home: 'private',
    ...filesystem,
  },
  network: { mode: 'none', allow: [] },
  credentials: [],
  exec: 'any',
  environment: { pass: [], set: {}, override: {} },
  syscalls: { base: 'strict', allow: [], deny: [] },
  limits: {
    memoryBytes: 536_870_912,
    pids: 64,
    cpu: 1,
    openFiles: 1024,
    fileBytes: 1_073_741_824,
    enforcement: { memory: 'best-effort', cpu: 'best-effort', pids: 'required', files: 'required' },
  },
  assertions: [],
  decidedAt: {},
  ...more,
})

/** This process as the daemon, with an environment of the test's own. */
export const factsOf = (more: Partial<HostFacts> = {}): HostFacts => ({
  uid,
  gid,
  groupOf: (other) => other,
  uidsInUse: new Set(),
  own: [],
  homes: [],
  environment: {},
  ...more,
})

/** Registers the server and resolves one launch of it. */
export const resolve = async ({
  server = {},
  profile = {},
  settings = {},
  facts = {},
}: {
  readonly server?: Partial<ServerSettings>
  readonly profile?: Parameters<typeof profileOf>[0]
  readonly settings?: Partial<Settings>
  readonly facts?: Partial<HostFacts>
} = {}): Promise<{ readonly spec: SandboxSpec; readonly overrides: readonly OverriddenVariable[] }> => {
  const [whole, parts] = [serverOf(server), settingsOf(settings)]
  const registration = await new Registrations(parts, trust).verified(whole)
  const request = { server: whole, profile: profileOf(profile), settings: parts, registration }
  const host = factsOf(facts)
  const resolved = resolveServer({ ...request, instance: newInstanceId() }, host)
  const { variables, overrides } = buildEnvironment({ ...request, daemon: host.environment, supplied: {} })
  const spec = await settleSpec(resolved, variables, await planFilesystem(resolved, host), {
    network: { mode: 'none' },
    files: [],
    hasCredentialFiles: false,
  })
  return { spec, overrides }
}
