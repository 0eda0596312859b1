// The servers of a run, honest and hostile, and the ways in which their one tool can be asked to behave.
import { fixture, configOf } from '../support/daemon.ts'
import type { Witness } from '../support/witness.ts'

/** Servers whose effects are written down outside, by name. */
export const witnessed = [
  'plain',
  'hostile',
  'asked',
  'secret',
  'single',
  'shared',
  'web',
  'swapped',
  'boxed',
] as const

/** The one that no reload changes, no fault picks and nobody stops: what a reload does to it is done to one that it must leave. */
export const untouched = 'steady'

/** Those that a configuration may have beside them for a while; one of them is started by itself. */
export const extras = ['extra0', 'extra1', 'extra2'] as const

/** How a configuration differs from the one that holds otherwise: servers by name, and what is changed of one */
export interface Variation {
  readonly added?: readonly string[]
  readonly changed?: readonly string[]
  readonly removed?: readonly string[]
  /** What the changed ones get, another each time */
  readonly mark?: string
}

/** Ways after which an honest answer comes. */
export const kindWays = [
  'honest',
  'honest',
  'honest',
  'late',
  'shouts',
  'changes',
  'reaches',
  'uses',
  'tells',
] as const

/** Ways of servers that nobody should trust. */
export const hostileWays = [
  'dies-first',
  'dies',
  'exits',
  'silent',
  'garbage',
  'flood',
  'huge',
  'hog',
  'forks',
  'stops',
  'closes',
  'shuts',
  'becomes',
  'shouts',
  'asks',
  'changes',
  'deaf',
] as const

export interface Around {
  readonly hasContainers: boolean
  /** Where what one of them may reach listens */
  readonly port: number
}

/** A configuration that allows most, asks for some, and lets nothing take long; `more` is of the top level. */
export function configuration(
  seen: Witness,
  { hasContainers, port }: Around,
  { more = {}, variation = {} }: { readonly more?: object; readonly variation?: Variation } = {},
): object {
  const entry = (name: string, own: object = {}): object =>
    fixture('chaotic', {
      args: ['/app/chaotic.mjs', `/seen/${name}`],
      profile: 'chaotic',
      mounts: [seen.mount],
      timeouts: { initialize_ms: 15_000, call_ms: 4000, idle_ms: 3000 },
      stop: { eof_ms: 200, term_ms: 300 },
      restart: { schedule_s: [0.2, 0.5, 1], steady_s: 10, storm: 1000 },
      elicitation: { enabled: true, timeout_ms: 1000, queue: 2 },
      ...own,
    })
  const servers: Record<string, object> = {
    plain: entry('plain'),
    hostile: entry('hostile', { output: { line_bytes: 1_048_576 }, max_concurrent: 2 }),
    asked: entry('asked', { max_concurrent: 1 }),
    secret: entry('secret', { credentials: [{ use: 'key', inject: 'meta', as: 'KEY' }] }),
    single: entry('single', {
      instance: 'call',
      max_concurrent: 3,
      credentials: [
        { use: 'key', inject: 'env', as: 'WORD' },
        { use: 'word', inject: 'file', as: 'WORD_FILE' },
      ],
    }),
    shared: entry('shared', {
      args: ['/app/chaotic.mjs', '/seen/shared', 'stateless'],
      instance: 'shared',
      max_concurrent: 2,
    }),
    web: entry('web', {
      profile: 'reaching',
      egress: [{ ...reached, port }],
      egress_when: 'calling',
      env: { PORT: String(port) },
    }),
    swapped: entry('swapped', {
      profile: 'reaching',
      egress: [{ ...reached, port, tls: false }],
      env: { PORT: String(port) },
      credentials: [{ use: 'key', inject: 'egress', as: 'KEY', hosts: [`${reached.host}:${port}`] }],
      // Long enough that a connection is cut because its call is over, and not since the server ended.
      timeouts: { initialize_ms: 15_000, call_ms: 4000, idle_ms: 60_000 },
    }),
    // Never stopped while a session of it is idle, so that only a reload can have ended it.
    [untouched]: entry(untouched, { timeouts: { initialize_ms: 15_000, call_ms: 20_000, idle_ms: 600_000 } }),
    stormy: fixture('crash-at-start', {
      restart: { schedule_s: [0.1], steady_s: 30, storm: 4, start_attempts: 9 },
    }),
    ...(hasContainers ? { boxed: entry('boxed', { driver: 'docker' }) } : {}),
  }
  for (const name of variation.added ?? [])
    servers[name] = entry(name, { start: name === extras[0] ? 'eager' : 'lazy' })
  for (const name of variation.changed ?? []) servers[name] = remarked(servers[name], variation.mark ?? '')
  for (const name of variation.removed ?? []) delete servers[name]
  return configOf(servers, {
    credentials: { key: { env: 'CHAOS_KEY' }, word: { file: 'word' } },
    rules: [
      { permission: 'mcp:asked:*', action: 'ask' },
      { permission: 'mcp:*:*', action: 'allow' },
    ],
    approval: { wait_ms: 2000, ttl_ms: 5000 },
    dynamic: { enabled: true, profile: 'node', tools: { allow: ['effect'] } },
    journal: { segment_bytes: 262_144 },
    ...more,
  })
}

const remarked = (entry: { readonly env?: object } = {}, mark: string): object => ({
  ...entry,
  env: { ...entry.env, MARK: mark },
})

/** What one of them may reach, by a plain connection. */
const reached = { host: 'api.chaos.test', address: '127.0.0.1', private: true, reason: 'the API' }

/** The profiles that the configuration names, by the names of their files. */
export const profiles = ({ port }: Pick<Around, 'port'>): Readonly<Record<string, object>> => ({
  'chaotic.yaml': chaotic,
  'reaching.yaml': {
    version: 1,
    name: 'reaching',
    extends: 'chaotic',
    widens: true,
    network: { mode: 'allowlist', allow: [{ ...reached, port }] },
  },
})

const chaotic = {
  version: 1,
  name: 'chaotic',
  extends: 'workspace-write',
  widens: true,
  credentials: ['meta', 'env', 'file', 'egress'],
  limits: { memory_bytes: 201_326_592, pids: 64 },
}
