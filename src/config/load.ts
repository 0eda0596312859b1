// From files to settings: find, read, validate, lay the scopes over one another, resolve, and refuse what cannot be kept.
import { join, resolve } from 'node:path'
import { SallyportError } from '../errors.ts'
import { errnoOf, isMissing } from '../lib/missing.ts'
import type { NetworkGrant, ProfileSettings, ServerSettings, Settings } from '../schema/settings.ts'
import type { Config } from '../schema/types.gen.ts'
import { checkCeiling } from './ceiling.ts'
import { loadDeclaration } from './declaration.ts'
import { inMemory, parseDocument } from './document.ts'
import { findConfig, type FindOptions, type FoundFile } from './find.ts'
import { freeze } from './freeze.ts'
import { checkSources } from './injection.ts'
import { makeLayer, type Layer } from './layer.ts'
import { troubleOf } from './named-file.ts'
import { loadProfile } from './profile.ts'
import { profileSearch } from './profile-layers.ts'
import { narrowByProject } from './project.ts'
import { readTrusted } from './read.ts'
import { issue, refuse, type Issue } from './refusal.ts'
import { warningsOfRules } from './rule-warnings.ts'
import { checkRules } from './rules.ts'
import { overlay } from './scopes.ts'
import { buildServer } from './server.ts'

export interface LoadOptions extends FindOptions {
  /** Folder of the project whose .sallyport.yaml narrows, absolute */
  readonly project?: string
  /** Hosts that every profile with an allowlist has beyond its own: named by a person who is the operator */
  readonly targets?: readonly Omit<NetworkGrant, 'address' | 'private'>[]
  /** What every profile lets a server mount at least: named by the same person */
  readonly mounts?: 'read' | 'write'
}

/** Loads the configuration that this host has or names. Every refusal is a `SallyportError` with file, place and mend. */
export async function loadSettings(options: LoadOptions): Promise<Settings> {
  const found = await findConfig(options)
  const layers = await readLayers(found, options)
  const settings = await settle(layers, options)
  if (options.project === undefined) return settings
  return await narrowByProject(settings, options.project, [options.uid])
}

/** Makes settings of a value that never was a file, such as the one server of `sallyport run`; `source` is what refusals call it. */
export async function settingsOf(
  value: unknown,
  directory: string,
  options: LoadOptions,
  source = 'the command line',
): Promise<Settings> {
  return await settle([makeLayer('file', inMemory(source, value), directory)], options)
}

async function readLayers(found: readonly FoundFile[], options: LoadOptions): Promise<readonly Layer[]> {
  const layers: Layer[] = []
  for (const file of found) {
    const [highest] = layers
    if (highest?.config.exclusive === true) {
      if (file.scope !== 'file') break
      throw new SallyportError(
        'ERR_CONFIG_SCOPE',
        `${file.path}: got a file named by ${file.by}, expected none: ${highest.document.path} is exclusive; leave ${file.by} out`,
        { file: file.path, got: file.by, decided_by: highest.document.path },
      )
    }
    layers.push(await readLayer(file, options))
  }
  return layers
}

async function readLayer(file: FoundFile, { uid }: LoadOptions): Promise<Layer> {
  try {
    const { path, text } = await readTrusted(file.path, [uid])
    return makeLayer(file.scope, parseDocument(path, text))
  } catch (error) {
    const code = errnoOf(error)
    if (error instanceof SallyportError || code === null) throw error
    const problem = troubleOf(code, 'read')
    throw new SallyportError(
      'ERR_CONFIG_NOT_FOUND',
      `${file.path}: ${problem}, though ${file.by} names it; write it, or name another`,
      { file: file.path, by: file.by },
      { cause: error },
    )
  }
}

/** Everything after reading: pure but for the profiles, which are files of their own. */
async function settle(layers: readonly Layer[], options: LoadOptions): Promise<Settings> {
  const { config, allowedCommands, credentials, servers, rules, warnings } = overlay(layers)
  const sources = new Set(Object.keys(credentials))
  const built = servers.map(({ name, entry, layer }) => ({
    entry,
    layer,
    ...buildServer(name, entry, layer, {
      env: options.env,
      mode: config.mode,
      driver: config.driver,
      sources,
    }),
  }))
  refuse([
    ...layers.flatMap(checkSources),
    ...layers.flatMap(checkRules),
    ...built.flatMap(({ issues }) => issues),
  ])

  const profiles = new Map<string, ProfileSettings>()
  const byLayer = new Map<string, ProfileSettings>()
  const exceeded: Issue[] = []
  for (const { server, entry, layer } of built) {
    // By the folders of its own layer, whoever else uses the name: it is refused where two of those have it.
    const key = `${layer.scope} ${server.profile}`
    const profile = byLayer.get(key) ?? widened(await profileOf(server, layer, options), options)
    byLayer.set(key, profile)
    profiles.set(server.profile, profile)
    exceeded.push(...checkCeiling(server.name, entry, profile, layer))
  }
  refuse(exceeded)

  const declared: ServerSettings[] = []
  for (const { server, entry, layer } of built)
    declared.push(await withDeclaration(server, entry, layer, options))
  return freeze({
    sources: layers.map(({ scope, document }) => ({ scope, path: document.path })),
    allowedCommands,
    commandPath: config.command_path,
    interpreterOptions: config.interpreter_options,
    maxDynamicServers: config.max_dynamic_servers,
    pool: { memoryBytes: config.pool.memory_bytes },
    startup: { concurrency: concurrency(config.startup.concurrency, options.env) },
    requireSeparation: config.require_separation,
    hostGroup: config.host_group,
    mode: config.mode,
    driver: config.driver,
    credentials,
    servers: new Map(declared.map((server) => [server.name, server])),
    profiles,
    rules,
    tools: {
      naming: config.tools.naming,
      descriptionList: config.tools.description_list,
      descriptionFull: config.tools.description_full,
      perServer: config.tools.per_server,
      searchThreshold: config.tools.search_threshold,
      searchMatches: config.tools.search_matches,
    },
    dynamic: {
      enabled: config.dynamic.enabled,
      inAll: config.dynamic.in_all,
      profile: config.dynamic.profile,
      trust: config.dynamic.trust,
      acceptance: config.dynamic.acceptance,
      allow: config.dynamic.tools.allow,
    },
    ...governance(config),
    warnings: [...warnings, ...warningsOfRules(rules), ...declared.flatMap(warningsOf)],
  })
}

const governance = ({
  approval,
  permit,
  trust,
  journal,
}: Pick<Config, 'approval' | 'permit' | 'trust' | 'journal'>): Pick<
  Settings,
  'approval' | 'permit' | 'trust' | 'journal'
> => ({
  approval: { waitMs: approval.wait_ms, ttlMs: approval.ttl_ms },
  permit: { ttlMs: permit.ttl_ms },
  trust: {
    provisionalAfter: trust.provisional_after,
    trustedAfter: trust.trusted_after,
    contaminate: trust.contaminate,
  },
  journal: {
    durability: journal.durability,
    segmentBytes: journal.segment_bytes,
    evidenceBytes: journal.evidence_bytes,
    keepDays: journal.keep_days,
  },
})

/** The enterprise's servers take their profiles from its folder alone: a user's file cannot redefine what they may do. */
async function profileOf(
  server: ServerSettings,
  layer: Layer,
  options: LoadOptions,
): Promise<ProfileSettings> {
  const search =
    layer.scope === 'enterprise'
      ? { folders: [join(layer.directory, 'profiles')], owners: [options.uid] }
      : profileSearch(options, { configFolder: layer.directory, ...enterpriseOf(options) })
  try {
    return await loadProfile(server.profile, search)
  } catch (error) {
    if (!(error instanceof SallyportError) || error.code !== 'ERR_PROFILE_UNKNOWN') throw error
    const place = layer.document.locate(['servers', server.name, 'profile'], 'value')
    const where =
      place === null ? layer.document.path : `${layer.document.path}:${place.line}:${place.column}`
    const message = `${where}: servers.${server.name}.${error.message}`
    throw new SallyportError(
      error.code,
      message,
      { ...error.details, file: layer.document.path },
      { cause: error },
    )
  }
}

function widened(profile: ProfileSettings, { targets = [], mounts }: LoadOptions): ProfileSettings {
  const { network, filesystem } = profile
  const allow = [...network.allow, ...targets.map((target) => ({ ...target, address: null, private: false }))]
  return {
    ...profile,
    ...(network.mode === 'allowlist' && targets.length > 0 && { network: { ...network, allow } }),
    ...(mounts !== undefined && filesystem.mounts !== 'write' && { filesystem: { ...filesystem, mounts } }),
  }
}

const enterpriseOf = ({ enterprise }: LoadOptions) => (enterprise === undefined ? {} : { enterprise })

async function withDeclaration(
  server: ServerSettings,
  { declaration }: Config['servers'][string],
  { directory, document }: Layer,
  { uid }: LoadOptions,
): Promise<ServerSettings> {
  if (declaration === null || !server.enabled) return server
  try {
    const file = await loadDeclaration(resolve(directory, declaration), [uid], server)
    return { ...server, declaration: file.tools, declaredVersion: file.declaration.said_version ?? null }
  } catch (error) {
    if (!(error instanceof SallyportError) || error.code !== 'ERR_CONFIG_NOT_FOUND') throw error
    const { cause } = error
    const said = isMissing(cause)
      ? { expected: 'a file that is there', mend: `draft one with sallyport declare ${server.name}` }
      : {
          expected: 'a file that can be read',
          mend: `${troubleOf(errnoOf(cause) ?? '', 'read')}; make it readable, or name another`,
        }
    refuse([issue('ERR_CONFIG_NOT_FOUND', document, ['servers', server.name, 'declaration'], said)])
    throw error
  }
}

/** What a person should know at start-up and may well have meant. */
function warningsOf({ name, enabled, trust, tools, mounts }: ServerSettings): readonly string[] {
  if (!enabled) return []
  const exposed = trust === 'untrusted' && tools.allow.length === 0
  return [
    ...(exposed
      ? [`server ${name} is untrusted and its tools.allow is empty: every tool that it has is exposed`]
      : []),
    ...mounts
      .filter(({ access }) => access === 'write')
      .map(
        ({ source }) =>
          `server ${name} may write to ${source}: what others run from there later runs unconfined`,
      ),
  ]
}

/** How many eager servers start at once; the variable is for small machines and containers. */
function concurrency(configured: number, env: LoadOptions['env']): number {
  const said = env['SALLYPORT_STARTUP_CONCURRENCY']
  if (said === undefined) return configured
  if (/^[1-9][0-9]?$|^100$/.test(said)) return Number(said)
  const got = JSON.stringify(said)
  throw new SallyportError(
    'ERR_CONFIG_VARIABLE',
    `$SALLYPORT_STARTUP_CONCURRENCY: got ${got}, expected a whole number from 1 to 100; mend it or unset it`,
    { got, expected: 'a whole number from 1 to 100' },
  )
}
