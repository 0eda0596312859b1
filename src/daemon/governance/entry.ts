// What one server comes to: its entry with all that it draws on elsewhere in the configuration, as one digest.
import { digestOf } from '../../call/canonical.ts'
import type { ServerSettings, Settings } from '../../schema/settings.ts'
import { digestOfProfile } from './applied.ts'

/** Digest of a server's settings, its profile, its command and the sources of its credentials; equal ones run alike. */
export function digestOfEntry(settings: Settings, server: ServerSettings): string {
  const { profiles, allowedCommands, commandPath, interpreterOptions, credentials } = settings
  const profile = profiles.get(server.profile)
  const uses = server.credentials.map(({ use }) => use)
  const drawnOn = {
    server: { ...server, file: null },
    profile: profile === undefined ? null : digestOfProfile(profile),
    command: allowedCommands.find(({ name }) => name === server.command) ?? null,
    commandPath,
    options: Object.entries(interpreterOptions).filter(([name]) => name === server.command),
    sources: Object.entries(credentials).filter(([name]) => uses.includes(name)),
  }
  return digestOf(JSON.stringify(drawnOn, sorted))
}

/** Members in one order, whatever the file's is: unlike arguments, an entry may hold what RFC 8785 has no form for. */
const sorted = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value
