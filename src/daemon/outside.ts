// What one daemon has outside of its sandboxes for them: the broker of secrets, the folder of doors, and who hears of both.
import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../lib/folder.ts'
import { late } from '../lib/late.ts'
import { createBroker } from '../credentials/broker.ts'
import { findInitBinary } from '../sandbox/init-binary.ts'
import type { Broker } from '../schema/credentials.ts'
import type { EgressLimits } from '../schema/egress.ts'
import type { Settings } from '../schema/settings.ts'
import type { Emit } from '../supervisor/ports.ts'
import { type EgressRecordPorts, egressRecord } from './machine/egress-record.ts'
import type { Governance } from './governance/governance.ts'
import type { Guard } from './guard.ts'
import { Outfits } from './machine/outfits.ts'

// A daemon whose servers have no way out does without what opens it.
const door = late(() => import('../egress/door.ts'))
// HTTP, TLS and what unpacks answers: a daemon whose servers carry no credential does without.
const interceptor = late(
  () => import('../egress/intercept/interceptor.ts'),
  ['reflect-metadata', '@peculiar/x509'],
)

/** Bounds of one sandbox's way out. */
const limits: EgressLimits = {
  connections: 256,
  connectMs: 10_000,
  handshakeMs: 10_000,
  idleMs: 300_000,
  totalMs: 86_400_000,
  bytesUp: 2 ** 34,
  bytesDown: 2 ** 34,
}

export interface OutsideOptions extends EgressRecordPorts {
  readonly settings: Settings
  /** The daemon's environment, which sources may name */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Where the doors are made; the daemon's own, and searchable for the sandboxes' users */
  readonly runtimeDir: string
  readonly guard: Guard
}

/** Disposing closes what is open; the servers must have ended. */
export interface Outside extends AsyncDisposable {
  readonly broker: Broker
  readonly outfits: Outfits
}

/** Makes the folder of the doors, empty, and names it to the guard before: doors of a daemon that was killed with its guard lead nowhere. */
export async function createOutside(options: OutsideOptions): Promise<Outside> {
  const { settings, environment, runtimeDir, guard } = options
  const doors = join(runtimeDir, 'egress')
  guard.cleanUp(`doors /${doors.replace(/^\/+/, '')}`)
  await rm(doors, { recursive: true, force: true })
  makeFolder(doors, 0o711)
  await chmod(doors, 0o711) // whatever the umask is: a sandbox's user passes through, and sees nothing
  const broker = createBroker({
    get sources() {
      return settings.credentials // others after a reload
    },
    environment,
    uid: process.geteuid?.() ?? -1,
    initPath: await findInitBinary(),
  })
  const outfits = new Outfits(settings, {
    ...egressRecord(options),
    broker,
    async openDoor(policy, parts) {
      const { openDoor } = await door()
      return openDoor(policy, parts)
    },
    async createInterceptor(one) {
      const { createInterceptor } = await interceptor()
      return createInterceptor(one)
    },
    limits,
    doors,
  })
  return {
    broker,
    outfits,
    [Symbol.asyncDispose]: () => outfits[Symbol.asyncDispose](),
  }
}

/** What the record of the doors takes of governance, which is made after them. */
export function recordOf(governance: () => Governance, emit: Emit): EgressRecordPorts {
  return {
    emit,
    record: (type, body) => governance().recorder.record(type, body),
    violateScope: (server, detail) => governance().violateScope(server, detail),
    async distrust(server, detail) {
      const { ledger, consequences } = governance()
      const tools = [...(ledger.accepted(server)?.tools.keys() ?? [])]
      await consequences.violate(server, tools, 'MP-FH-008', detail)
    },
  }
}
