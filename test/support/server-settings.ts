// Settings of a server for tests: everything at its default, quick to stop.
import type { ServerSettings } from '../../src/schema/settings.ts'
import { fixture } from './plain-launch.ts'

/** A server named `name` that runs a fixture with node; `more` overrides. */
export const serverSettings = (script: string, more: Partial<ServerSettings> = {}): ServerSettings => ({
  name: 'fixture',
  scope: 'file',
  directory: '/',
  command: process.execPath,
  args: [fixture(script)],
  package: null,
  version: '1.0.0',
  enabled: true,
  disabledReason: null,
  tags: [],
  justification: '',
  profile: 'offline',
  mounts: [],
  env: {},
  envOverride: {},
  cwd: null,
  trust: 'trusted',
  surface: 'static',
  declaration: null,
  acceptance: 'first-use',
  tools: { allow: [], deny: [], readOnly: [] },
  start: 'lazy',
  elicitation: { enabled: false, timeoutMs: 120_000, queue: 16 },
  sampling: false,
  roots: 'mounts',
  output: { resultBytes: 1_048_576, lineBytes: 10_485_760, stderrBytes: 1_048_576 },
  timeouts: { initializeMs: 10_000, callMs: 30_000, idleMs: 600_000 },
  stop: { eofMs: 500, termMs: 500 },
  restart: { scheduleS: [1, 2, 5, 15, 60], jitter: 0.2, steadyS: 60, startAttempts: 3, storm: 10 },
  runAs: null,
  unenforceable: [],
  ...more,
})
