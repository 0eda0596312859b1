// What the configuration came to, on record: the servers that it registers, and what a host's launches get.
import { hash } from 'node:crypto'
import type { ProfileSettings, ServerSettings, Settings } from '../../schema/settings.ts'
import type { Governance } from './governance.ts'

type Body = Readonly<Record<string, unknown>>

/** Records what is not as the journal last said it; nothing where all is. */
export async function recordConfiguration(
  governance: Pick<Governance, 'applied' | 'recorder'>,
  settings: Settings,
): Promise<void> {
  await recordOnce(governance, 'config.applied', configOf(settings))
  await recordOnce(governance, 'dynamic.applied', dynamicOf(settings))
}

/** Records that these settings hold from now on, on somebody's word, whatever the journal last said. */
export async function recordReload(
  governance: Pick<Governance, 'applied' | 'recorder'>,
  settings: Settings,
  actor: Body,
): Promise<void> {
  const body = configOf(settings)
  // One batch: both are there, or neither holds.
  await Promise.all([
    governance.recorder.record('config.applied', { digest: digestOf(body), ...body, ...actor }),
    recordOnce(governance, 'dynamic.applied', dynamicOf(settings)),
  ])
}

/** Digest of a profile with everything that it grants, wherever that is stated: an update of ours has its profiles elsewhere. */
export function digestOfProfile(profile: ProfileSettings): string {
  const assertions = profile.assertions.map((one) => ({ ...one, file: null }))
  return hash('sha256', JSON.stringify({ ...profile, assertions, path: null, decidedAt: null }))
}

async function recordOnce(
  { applied, recorder }: Pick<Governance, 'applied' | 'recorder'>,
  type: 'config.applied' | 'dynamic.applied',
  body: Body,
): Promise<void> {
  const digest = digestOf(body)
  if (applied(type)?.digest === digest) return
  await recorder.record(type, { digest, ...body })
}

const digestOf = (body: Body): string => hash('sha256', JSON.stringify(body))

const configOf = ({ sources, mode, rules, servers, profiles, ...settings }: Settings): Body => ({
  sources,
  mode,
  rules,
  approval: settings.approval,
  permit: settings.permit,
  trust: settings.trust,
  tools: settings.tools,
  servers: [...servers.values()]
    .filter(({ scope }) => scope !== 'registered' && scope !== 'dynamic')
    .map((server) => registrationOf(server, profiles.get(server.profile))),
})

/** The operator's standing word about launches of hosts: each `server.launched` names the record of it. */
const dynamicOf = ({ dynamic, maxDynamicServers, profiles }: Settings): Body => {
  const profile = profiles.get(dynamic.profile)
  return {
    ...dynamic,
    max_dynamic_servers: maxDynamicServers,
    profile_digest: profile === undefined ? null : digestOfProfile(profile),
  }
}

const registrationOf = (server: ServerSettings, profile: ProfileSettings | undefined): Body => ({
  server: server.name,
  scope: server.scope,
  command: server.command,
  args: server.args,
  package: server.package,
  version: server.version,
  enabled: server.enabled,
  trust: server.trust,
  surface: server.surface,
  acceptance: server.acceptance,
  declared: server.declaration === null ? null : Object.keys(server.declaration),
  justification: server.justification,
  tags: server.tags,
  profile: server.profile,
  profile_digest: profile === undefined ? null : digestOfProfile(profile),
  mounts: server.mounts,
  egress: server.egress,
  credentials: server.credentials.map(({ use, inject }) => ({ use, inject })),
})
