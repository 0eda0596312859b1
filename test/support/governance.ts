// Governance as the daemon composes it, on a journal in a temporary folder.
import { join } from 'node:path'
import { Confided } from '../../src/credentials/confided.ts'
import { Governance } from '../../src/daemon/governance/governance.ts'
import { noOutfits } from '../../src/daemon/machine/outfits.ts'
import type { JournalRecord } from '../../src/journal/record.ts'
import { beginning, listSegments, readSegment } from '../../src/journal/segments.ts'
import { newDaemonId, newInstanceId } from '../../src/lib/ids.ts'
import type { Keeper } from '../../src/schema/redactor.ts'
import type { Rule, ServerSettings, Settings } from '../../src/schema/settings.ts'
import { policyUnder } from '../../src/daemon/governance/policy.ts'
import { redactor } from '../../src/daemon/redactor.ts'
import type { Emit, Policy } from '../../src/supervisor/ports.ts'
import { tempDir } from './temp-dir.ts'

/** The settings of governance at their defaults. */
export const governanceDefaults: Pick<Settings, 'approval' | 'permit' | 'trust' | 'journal'> = {
  approval: { waitMs: 120_000, ttlMs: 900_000 },
  permit: { ttlMs: 30_000 },
  trust: { provisionalAfter: 10, trustedAfter: 50, contaminate: 'tool' },
  journal: { durability: 'write', segmentBytes: 67_108_864, evidenceBytes: 65_536, keepDays: 0 },
}

export interface Governed extends AsyncDisposable {
  readonly governance: Governance
  readonly directory: string
  readonly policy: Policy
  /** Every record that is in the journal */
  records(): readonly JournalRecord[]
}

/** As `noOutfits`, and each call of a server with `instance: call` gets a process. */
const outfitsOf = (servers: readonly ServerSettings[]): typeof noOutfits => ({
  ...noOutfits,
  equip: ({ server, kind }) => {
    const isOfCall = servers.some(({ name, instance }) => name === server && instance === 'call')
    const process = isOfCall && kind === 'tool' ? newInstanceId() : null
    return { process, secrets: null, end: () => undefined }
  },
})

interface Options {
  readonly servers?: readonly ServerSettings[]
  readonly rules: readonly Rule[]
  readonly emit: Emit
  readonly halt?: (server: string, reason: string) => void
  readonly settings?: Partial<Settings>
  readonly codeOf?: (server: ServerSettings) => string
  /** State folder of an earlier life; else one that goes with this */
  readonly state?: string
  readonly owedPaths?: readonly string[]
  readonly redactor?: Keeper
}

/** Opens a journal and the governor on it. */
export async function governed(options: Options): Promise<Governed> {
  const { servers = [], rules, emit, halt = () => undefined, codeOf = (server) => server.command } = options
  const folder = options.state === undefined ? await tempDir() : null
  const state = options.state ?? folder?.path ?? ''
  const settings = {
    servers: new Map(servers.map((server) => [server.name, server])),
    profiles: new Map(),
    rules,
    allowedCommands: [],
    commandPath: [],
    interpreterOptions: {},
    credentials: {},
    startup: { concurrency: 3 },
    pool: { memoryBytes: 67_108_864 },
    tools: { naming: '<server>_<tool>', descriptionList: 200, descriptionFull: 2048, perServer: 100 },
    ...governanceDefaults,
    ...options.settings,
  } as unknown as Settings
  const directory = join(state, 'journal')
  const keyPath = join(state, 'journal.key')
  const governance = await Governance.open({
    settings,
    directory,
    keyPath,
    clockPath: join(state, 'clock'),
    owedPaths: options.owedPaths ?? [join(state, 'journal.owed')],
    daemon: newDaemonId(),
    emit,
    codeOf,
    originOf: codeOf,
    ownerOf: () => null,
    stands: () => true,
    halt,
    review: () => undefined,
    redactor: options.redactor ?? redactor,
    confided: new Confided(),
    separation: 'none',
    outfits: outfitsOf(servers),
  })
  return {
    governance,
    directory,
    policy: policyUnder(governance)(() => settings),
    records: () => readAll(directory),
    async [Symbol.asyncDispose]() {
      await governance[Symbol.asyncDispose]()
      await folder?.[Symbol.asyncDispose]()
    },
  }
}

function readAll(directory: string): readonly JournalRecord[] {
  const records: JournalRecord[] = []
  let head = beginning
  for (const segment of listSegments(directory))
    head = readSegment(directory, segment, head, null, (record) => records.push(record)).end
  return records
}
