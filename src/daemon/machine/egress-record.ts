// What happens at the doors, told and recorded: connections and refusals, never a byte of them, and what they mean for trust.
import type { Recorder } from '../../call/ports.ts'
import type { CredentialViolation, SwapPlace } from '../../schema/credentials.ts'
import type { EgressEndpoint, EgressEvent } from '../../schema/egress.ts'
import type { RecordType } from '../../schema/record-type.ts'
import type { Emit } from '../../supervisor/ports.ts'
import type { Outfit, OutfitParts } from './outfit.ts'

export interface EgressRecordPorts {
  readonly emit: Emit
  readonly record: Recorder['record']
  /** Halts the server: it did what nothing that it was given covers */
  readonly violateScope: (server: string, detail: string) => Promise<void>
  /** Takes what the server's tools had earned */
  readonly distrust: (server: string, detail: string) => Promise<void>
}

const types = { opened: 'connected', refused: 'refused', closed: 'closed' } as const

/** The part of outfits that speaks to journal and subscribers. Where a record fails, the doors are shut until one succeeds. */
export function egressRecord(
  ports: EgressRecordPorts,
): Pick<OutfitParts, 'tell' | 'isRecording' | 'strayed' | 'misused' | 'failed'> {
  let isRecording = true
  const blocked = new WeakMap<Outfit, Map<string, number>>()
  const say = (outfit: Outfit, type: RecordType, detail: Readonly<Record<string, unknown>>): void => {
    const { server, instance, principal } = outfit
    const calls = outfit.calls.map(({ call }) => call)
    ports.emit({
      type: type.replace('.', '/'),
      server: server.name,
      instance,
      principal,
      detail: { ...detail, calls },
    })
    const body = { server: server.name, instance, ...detail, calls }
    ports.record(type, body).then(
      () => (isRecording = true),
      () => (isRecording = false), // the journal tells of itself
    )
  }
  const halt = (outfit: Outfit, detail: string): void =>
    void ports.violateScope(outfit.server.name, detail).catch(() => undefined)
  return {
    isRecording: () => isRecording,
    tell: (outfit, event) => say(outfit, `egress.${types[event.kind]}`, detailOf(event)),
    strayed(outfit, { host, port }: EgressEndpoint) {
      const tools = [...new Set(outfit.calls.map(({ subject }) => subject))].join(', ')
      halt(
        outfit,
        `${outfit.server.name} reached for ${host}:${port} during ${tools}, declared without network; see sallyport declare ${outfit.server.name}`,
      )
    },
    failed(server, { code, message }) {
      const detail = { code, reason: message }
      const instance = null
      ports.emit({ type: 'credential/failed', server, instance, principal: 'operator', detail })
      void ports.record('credential.failed', { server, ...detail }).catch(() => undefined)
    },
    misused(outfit, violation) {
      const { credential, host, port, reason } = violation
      const counts = blocked.get(outfit) ?? new Map<string, number>()
      const key = `${credential} ${host}:${port} ${reason}`
      const count = (counts.get(key) ?? 0) + 1
      if (counts.size < maxKinds || counts.has(key)) counts.set(key, count)
      blocked.set(outfit, counts)
      // The first, the second, the fourth, …: a server that tries for ever fills no journal.
      if ((count & (count - 1)) !== 0) return
      const place = violation.place === null ? null : placeOf(violation.place)
      say(outfit, 'credential.blocked', { credential, host, port, reason, place, count })
      const detail = `${outfit.server.name} ${saying(violation)}`
      if (reason === 'no-lease' || reason === 'dead')
        void ports.distrust(outfit.server.name, detail).catch(() => undefined)
      else halt(outfit, detail)
    },
  }
}

/** Kinds of misuse that are counted apart in one instance */
const maxKinds = 64

function saying({ credential, host, port, reason, place }: CredentialViolation): string {
  switch (reason) {
    case 'no-lease':
      return `used the placeholder of ${credential} at ${host}:${port} while no call held it`
    case 'dead':
      return `used the placeholder of ${credential} at ${host}:${port} that one of its earlier processes had`
    case 'other-sandbox':
      return `sent a placeholder to ${host}:${port} that another process was given`
    case 'other-host':
      return `sent the placeholder of ${credential} to ${host}:${port}, which is not its host`
    case 'other-place':
      return `put the placeholder of ${credential} ${wordsOf(place)} to ${host}:${port}, where it is not swapped`
    case 'value':
      return `sent the secret ${credential} itself to ${host}:${port}`
  }
}

const placeOf = (place: SwapPlace): string =>
  place.in === 'header' ? `header ${place.name.slice(0, maxNameLetters)}` : place.in

/** Letters of a header's name that are told: it is the server's own choice */
const maxNameLetters = 64

function wordsOf(place: SwapPlace | null): string {
  switch (place?.in) {
    case 'header':
      return `in the ${placeOf(place)} of a request`
    case 'basic':
      return 'in Basic of a request'
    case 'query':
    case 'body':
      return `in a ${place.in}`
    case 'elsewhere':
    case undefined:
      return 'elsewhere in what it sent'
  }
}

const detailOf = (event: EgressEvent): Readonly<Record<string, unknown>> => ({
  connection: event.connection,
  host: event.host,
  port: event.port,
  address: event.address,
  verdict: event.verdict,
  reason: event.reason,
  bytes_up: event.bytesUp,
  bytes_down: event.bytesDown,
  duration_ms: event.durationMs,
  credentials: event.swapped,
  redacted: event.redacted,
  count: event.count,
})
