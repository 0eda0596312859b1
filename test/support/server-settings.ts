// Settings of a server for tests: everything at its default, quick to stop.
import type { ServerSettings } from '../../src/schema/settings.ts'
import { fixture } from './plain-launch.ts'
import { serverOf } from './settings.ts'

/** A server named `fixture` that runs a fixture with node; `more` overrides. */
export const serverSettings = (script: string, more: Partial<ServerSettings> = {}): ServerSettings =>
  serverOf({
    name: 'fixture',
    command: process.execPath,
    args: [fixture(script)],
    profile: 'offline',
    stop: { eofMs: 500, termMs: 500 },
    restart: { scheduleS: [1, 2, 5, 15, 60], jitter: 0.2, steadyS: 60, startAttempts: 3, storm: 10 },
    ...more,
  })
