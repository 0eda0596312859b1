// What settings allow, on one daemon's journal: the policy of all, and what a project's file leaves of it for one session.
import { gateOf } from '../../call/gate.ts'
import { digestOf } from '../../call/canonical.ts'
import { late } from '../../lib/late.ts'
import type { Gate } from '../../schema/gate.ts'
import type { ServerSettings, Settings } from '../../schema/settings.ts'
import type { Policy, Ports } from '../../supervisor/ports.ts'
import { digestOfEntry } from './entry.ts'
import type { Governance } from './governance.ts'
import { liveSettings } from './live-settings.ts'

const projects = late(() => import('../../config/project.ts'))

/** Version of what decides about a server that is not there */
const absent = 'none'

/** What one set of settings decides with. */
interface Ruling {
  readonly settings: Settings
  readonly gate: Gate
  /** Digest of what decides about every server */
  readonly digest: string
  /** Of the servers that were asked about: what decides about their calls */
  readonly versions: WeakMap<ServerSettings, string>
}

/**
 * The policy that settings make, on one daemon's journal. `now` returns the settings that hold; where it returns others,
 * whoever has the policy decides by those from then on.
 */
export const policyUnder =
  (governance: Pick<Governance, 'governors'>) =>
  (now: () => Settings): Policy => {
    let ruling = rulingOf(now())
    const current = (): Ruling => (now() === ruling.settings ? ruling : (ruling = rulingOf(now())))
    const gate: Gate = {
      route: (...message) => current().gate.route(...message),
      decide: (...asked) => current().gate.decide(...asked),
      lists: (...tool) => current().gate.lists(...tool),
      hides: (...method) => current().gate.hides(...method),
    }
    const versionOf = (name: string): string => {
      const { settings, digest, versions } = current()
      const server = settings.servers.get(name)
      if (server === undefined) return absent
      const known = versions.get(server)
      if (known !== undefined) return known
      const version = versionUnder(digest, settings, server)
      versions.set(server, version)
      return version
    }
    return { settings: liveSettings(now), gate, governor: governance.governors.under({ gate, versionOf }) }
  }

/** What a project's file leaves of the settings, for one session: of those that hold, whenever it is asked. */
export function narrowing(
  now: () => Settings,
  daemonUid: number,
  policy: ReturnType<typeof policyUnder>,
): Ports['narrow'] {
  return async (project, { principal }) => {
    const { projectNarrowing } = await projects()
    const narrow = await projectNarrowing(project, [daemonUid, principal.attributes.uid])
    let whole = now()
    let narrowed = narrow(whole)
    return policy(() => {
      if (now() !== whole) [whole, narrowed] = [now(), narrow(now())]
      return narrowed
    })
  }
}

/** Digest of what decides about a server's calls under these settings. */
export function policyVersionOf(settings: Settings, name: string): string {
  const server = settings.servers.get(name)
  return server === undefined ? absent : versionUnder(digestOfPolicy(settings), settings, server)
}

const versionUnder = (digest: string, settings: Settings, server: ServerSettings): string =>
  `${digest}-${digestOfEntry(settings, server).slice(0, 16)}`

/** Digest of what decides about calls, beside the servers' own entries. */
export const digestOfPolicy = ({ rules: stated, approval, permit, trust, tools }: Settings): string => {
  const rules = stated.map((rule) => ({ ...rule, origin: null })) // wherever they are stated
  return digestOf(JSON.stringify({ rules, approval, permit, trust, tools })).slice(0, 16)
}

const rulingOf = (settings: Settings): Ruling => ({
  settings,
  gate: gateOf(settings.rules),
  digest: digestOfPolicy(settings),
  versions: new WeakMap(),
})
