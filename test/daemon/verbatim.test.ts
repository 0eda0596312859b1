// Policy goes by what was given, now and after a restart, whatever of it looks like a secret; the words beside it are kept without one.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { actor } from '../../src/daemon/governance/actor.ts'
import { OwedFile } from '../../src/daemon/governance/owed-file.ts'
import { Past } from '../../src/daemon/governance/past.ts'
import { Ledger } from '../../src/call/ledger.ts'
import { redactor } from '../../src/daemon/redactor.ts'
import { Roster } from '../../src/daemon/roster.ts'
import { FormerNames } from '../../src/daemon/former-names.ts'
import { unseal } from '../../src/journal/sealed.ts'
import type { Keeper } from '../../src/schema/redactor.ts'
import type { Settings } from '../../src/schema/settings.ts'
import { acceptedBody } from '../support/accepted.ts'
import { governed, type Governed } from '../support/governance.ts'
import { serverSettings } from '../support/server-settings.ts'
import { caller } from '../support/supervisor.ts'
import { tempDir } from '../support/temp-dir.ts'

const token = `ghp_${'a1B2'.repeat(9)}`
const operator = actor(caller(0, 'operator'))
const server = { ...serverSettings('echo.mjs'), name: 'postgres' }

/** Knows the value of a credential, which the name of a server and a digest have in them. */
const knowing = (value: string): Keeper => {
  const redact: Keeper['redact'] = (text) => {
    const parts = text.split(value)
    const shapes = redactor.redact(parts.join('[redacted:pw]'))
    return { text: shapes.text, hits: shapes.hits + parts.length - 1 }
  }
  return { ...redactor, redact, redactLong: async (text) => redact(text) }
}
const life = (state: string, value = 'postgres'): Promise<Governed> =>
  governed({ servers: [server], rules: [], emit: () => undefined, state, redactor: knowing(value) })

const bodies = (at: Governed, type: string) =>
  at.records().flatMap((one) => (one.type === type ? [one.body] : []))

/** What holds of a life, and of the next one that reads its journal. */
async function inBoth(
  act: (at: Governed) => Promise<unknown>,
  holds: (at: Governed) => void,
  value?: string,
): Promise<void> {
  await using dir = await tempDir()
  {
    await using at = await life(dir.path, value)
    await act(at)
    holds(at)
  }
  await using next = await life(dir.path, value)
  holds(next)
}

test('a hold covers the server, the tool and the lineage that it was placed on', () =>
  inBoth(
    async ({ governance: { consequences } }) => {
      const none = { server: null, tool: null, lineage: null }
      await consequences.hold({ ...none, name: 'HP', server: 'postgres' }, '', operator)
      await consequences.hold({ ...none, name: 'HL', lineage: token }, `of ${token}`, operator)
      await consequences.hold({ ...none, name: token, tool: 'other' }, '', operator)
    },
    (at) => {
      const { ledger } = at.governance
      expect(ledger.hold('postgres', 'query', null)).toBe('HP')
      expect(ledger.hold('files', 'read', token)).toBe('HL')
      expect(ledger.hold('files', 'other', null)).toBe(token)
      expect(bodies(at, 'hold.placed')[1]).toMatchObject({
        reason: 'of [redacted: a GitHub token]',
        redacted: 1,
      })
    },
  ))

test('a quarantine is of the server that was halted, and so is its release', async () => {
  await inBoth(
    ({ governance }) => governance.consequences.stop('postgres', 'postgres did it', operator),
    (at) => {
      expect(at.governance.ledger.quarantine('postgres')).toMatchObject({ reason: '[redacted:pw] did it' })
    },
  )
  await inBoth(
    async ({ governance }) => {
      await governance.consequences.stop('postgres', 'why', operator)
      await governance.add({ type: 'server.released', body: { server: 'postgres', reason: 'postgres' } })
    },
    (at) => expect(at.governance.ledger.quarantined()).toEqual([]),
  )
})

const good = {
  call: 'c-1',
  server: 'postgres',
  kind: 'tool',
  subject: 'query',
  outcome: 'result',
  identity: 'postgres/query@1#1',
  trust_epoch: 1,
}

test('a violation, a reset and good calls are of the tool that they were of', () =>
  inBoth(
    async ({ governance }) => {
      await governance.add({ type: 'surface.accepted', body: acceptedBody('postgres', 'query') })
      await governance.consequences.violate('postgres', ['query'], 'MP-FH-003', 'it says postgres')
      await governance.consequences.reset('postgres', 'query', '', operator)
      await governance.recorder.record('call.outcome', { ...good, trust_epoch: 2 })
      await governance.recorder.record('call.outcome', { ...good, trust_epoch: 2 })
    },
    ({ governance }) =>
      expect(governance.ledger.trust('postgres', 'query')).toMatchObject({
        epoch: 2,
        evidence: 2,
        history: [{ detail: 'it says [redacted:pw]' }],
      }),
  ))

const schema = {
  type: 'object',
  properties: { dsn: { type: 'string', pattern: '^postgres://[^:]+:[^@]+@.+$' }, of: { enum: [token] } },
}
const listed = new Map([[token, { name: token, inputSchema: schema }]])
const accept = ({ governance }: Governed) =>
  governance.surfaces.accept(
    { server, tools: listed, saidVersion: token, rest: {} },
    { ...operator, declared: null, declaredVersion: null, only: null },
  )

test('what was accepted is what was listed: names, schemas and digests', async () => {
  let digest = ''
  await using dir = await tempDir()
  {
    await using at = await life(dir.path)
    digest = (await accept(at)).tools.get(token)?.surfaceDigest ?? ''
  }
  await inBoth(
    accept,
    ({ governance: { ledger } }) => {
      const accepted = ledger.accepted('postgres')
      expect(accepted?.saidVersion).toBe(token)
      expect(accepted?.tools.get(token)).toMatchObject({
        declaration: { name: token, parameters: schema },
        surfaceDigest: digest,
      })
      expect(ledger.standing('postgres', null, 'tool', token)).toMatchObject({ state: 'accepted' })
    },
    digest.slice(5, 9), // a PIN that it has in it by chance
  )
})

test('a registration comes back as it was stated, and names of servers stay the operator’s', async () => {
  await using dir = await tempDir()
  const registered = {
    server: 'postgres',
    entry: { mounts: [{ source: '/opt/r3/postgres' }], tools: { deny: ['postgres_*'] } },
    directory: '/opt/postgres',
    by: '0',
  }
  {
    await using at = await life(dir.path)
    await at.governance.recorder.record('server.registered', registered)
    await at.governance.recorder.record('config.applied', {
      digest: 'd',
      servers: [{ server: 'postgres', justification: `has ${token}` }],
    })
  }
  await using next = await life(dir.path)
  const roster = new Roster({ servers: new Map(), profiles: new Map() } as unknown as Settings, {} as never)
  const [names, past] = [new FormerNames(), new Past(new Ledger({ provisionalAfter: 2, trustedAfter: 4 }))]
  for (const record of next.records()) for (const fold of [roster, names, past]) fold.fold(record)
  expect(roster.save()).toMatchObject([registered])
  expect(names.save()).toEqual(['postgres'])
  expect(bodies(next, 'config.applied')).toMatchObject([
    { servers: [{ justification: 'has [redacted: a GitHub token]' }], redacted: 1 },
  ])
})

test('what is owed meanwhile is of the same server, and its words are without secrets', async () => {
  await using dir = await tempDir()
  const [path, key] = [join(dir.path, 'owed'), Buffer.alloc(32, 7)]
  const body = { server: 'postgres', origin: null, owner: null, failure: 'operator', reason: `of ${token}` }
  const file = new OwedFile({ paths: [path], key, redactor: knowing('postgres'), warn: () => undefined })
  file.write([{ fact: { type: 'server.quarantined', body }, evidence: { detail: token } }])
  expect(unseal('owed', readFileSync(path, 'utf8'), key)).toMatchObject({
    debts: [
      {
        fact: {
          type: 'server.quarantined',
          body: { ...body, reason: 'of [redacted: a GitHub token]' },
        },
        evidence: { detail: '[redacted: a GitHub token]' },
      },
    ],
  })
})
