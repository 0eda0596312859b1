// What `servers/get` says of a server's entry, beside what runs of it: all that was registered, and nothing secret.
import type { ServerDetail } from '../rpc/protocol.ts'
import type { ServerSettings } from '../schema/settings.ts'

type EntryView = Pick<
  ServerDetail,
  | 'justification'
  | 'tags'
  | 'surface'
  | 'acceptance'
  | 'declared'
  | 'mounts'
  | 'egress'
  | 'egress_when'
  | 'credentials'
  | 'instance'
>

export function entryView(settings: ServerSettings): EntryView {
  const { justification, tags, surface, acceptance, declaration, mounts, egress, instance } = settings
  return {
    justification,
    tags,
    surface,
    acceptance,
    declared: declaration === null ? null : Object.keys(declaration),
    mounts,
    egress,
    egress_when: settings.egressWhen,
    instance,
    credentials: settings.credentials.map(({ use, inject, as, hosts }) => ({
      use,
      inject,
      as,
      hosts: hosts.map(({ host, port }) => `${host}:${port}`),
    })),
  }
}
