// A violation whose record no disk takes, and a daemon that is killed before it is mended: the next one begins with it.
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { OwedFile } from '../../src/daemon/governance/owed-file.ts'
import { listSegments, segmentPath } from '../../src/journal/segments.ts'
import type { Happening } from '../../src/supervisor/ports.ts'
import { eventually } from '../support/eventually.ts'
import { governed, type Governed } from '../support/governance.ts'
import { serverSettings } from '../support/server-settings.ts'
import { tempDir } from '../support/temp-dir.ts'

const server = serverSettings('echo.mjs')
const { name } = server

interface Life extends Governed {
  readonly events: readonly Happening[]
}

async function life(state: string, owedPaths?: readonly string[]): Promise<Life> {
  const events: Happening[] = []
  const emit = (event: Happening): void => void events.push(event)
  const more = owedPaths === undefined ? {} : { owedPaths }
  return Object.assign(await governed({ servers: [server], rules: [], emit, state, ...more }), { events })
}

const bodies = (at: Governed, type: string) =>
  at.records().flatMap((one) => (one.type === type ? [one.body] : []))

/** The state folder as a kill at this moment leaves it, with the journal's folder put back. */
function killed(state: string, to: string): string {
  cpSync(state, to, { recursive: true })
  renameSync(join(to, 'journal.away'), join(to, 'journal'))
  return to
}

/** Accepts the tool: only what was accepted has trust to lose, here by its change and by its server's reach. */
async function accept(at: Life): Promise<void> {
  const tools = new Map([['echo', { name: 'echo', inputSchema: { type: 'object' } }]])
  const by = { by: '0', peer: { uid: 0, gid: 0, pid: 1 } }
  await at.governance.surfaces.accept(
    { server, tools, saidVersion: null, rest: {} },
    { ...by, declared: null, declaredVersion: null, only: null },
  )
}

/** Loses a tool's trust and halts the server while the journal's folder is away. */
async function violate(at: Life, state: string): Promise<void> {
  renameSync(at.directory, join(state, 'journal.away'))
  const { consequences } = at.governance
  await expect(consequences.violate(name, ['echo'], 'MP-FH-003', 'it changed')).rejects.toMatchObject({
    code: 'ERR_JOURNAL',
  })
  await expect(at.governance.violateScope(name, 'it reached out')).rejects.toMatchObject({
    code: 'ERR_JOURNAL',
  })
}

test('what was lost in one life is lost in the next, on record, once', async () => {
  await using dir = await tempDir()
  const state = join(dir.path, 'state')
  mkdirSync(state)
  await using at = await life(state)
  await accept(at)
  await violate(at, state)
  const copy = killed(state, join(dir.path, 'killed'))
  expect(readFileSync(join(copy, 'journal.owed'), 'utf8')).toContain('it changed')

  {
    await using next = await life(copy)
    expect(next.governance.ledger.trust(name, 'echo')).toMatchObject({ epoch: 2, tier: 'untrusted' })
    expect(next.governance.ledger.quarantined()).toMatchObject([{ server: name, failure: 'MP-FH-008' }])
    expect(bodies(next, 'trust.violated')).toMatchObject([
      { tool: 'echo', detail: 'it changed', owed: true },
      { tool: 'echo', detail: 'it reached out', owed: true },
    ])
    expect(bodies(next, 'server.quarantined')).toMatchObject([{ reason: 'it reached out', owed: true }])
    expect(existsSync(join(copy, 'journal.owed'))).toBe(false)
  }
  await using last = await life(copy)
  expect(last.governance.ledger.trust(name, 'echo')).toMatchObject({ epoch: 2 })
  expect(bodies(last, 'trust.violated')).toHaveLength(2)
  renameSync(join(state, 'journal.away'), at.directory)
  await eventually(() => !existsSync(join(state, 'journal.owed')))
  expect(bodies(at, 'trust.violated')).toHaveLength(2)
})

test('a yes that ended while no disk took it stands in no later life', async () => {
  await using dir = await tempDir()
  const state = join(dir.path, 'state')
  mkdirSync(state)
  await using at = await life(state)
  const { approvals, recorder } = at.governance
  const yes = {
    id: 'a-1',
    scope: 'policy',
    identity: `${name}/echo@0#1`,
    principal: '0',
    session: 's-1',
  } as const
  const digests = { argumentsDigest: 'a', repeatDigest: 'b', policyVersion: 'c', trustEpoch: 1, by: '0' }
  const [granted, over] = [Date.now(), Date.now() + 900_000].map((ms) => new Date(ms).toISOString())
  await recorder.record('approval.standing', { ...yes, ...digests, granted_at: granted, expires_at: over })
  approvals.restore({ ...yes, ...digests, expiresAt: Infinity })
  {
    // It stands in the next life, unless it ends.
    cpSync(state, join(dir.path, 'before'), { recursive: true })
    await using next = await life(join(dir.path, 'before'))
    expect(next.governance.approvals.standing()).toMatchObject([{ id: 'a-1' }])
  }
  renameSync(at.directory, join(state, 'journal.away'))
  expect(at.governance.reloaded(null)).toMatchObject({ approvals: ['a-1'] })
  await eventually(() => at.events.some(({ type }) => type === 'journal/failed'))
  {
    await using next = await life(killed(state, join(dir.path, 'killed')))
    expect(next.governance.approvals.standing()).toEqual([])
    expect(bodies(next, 'approval.ended')).toMatchObject([{ ids: ['a-1'], owed: true }])
  }
  renameSync(join(state, 'journal.away'), at.directory)
  await eventually(() => bodies(at, 'approval.ended').length > 0)
  expect(bodies(at, 'approval.ended')).toMatchObject([{ ids: ['a-1'] }])
})

test('one disk that takes it is enough; with none, that is told', async () => {
  await using dir = await tempDir()
  const state = join(dir.path, 'state')
  mkdirSync(state)
  const paths = [join(dir.path, 'no such folder', 'owed'), join(dir.path, 'owed')]
  {
    await using at = await life(state, paths)
    await accept(at)
    await violate(at, state)
    expect(at.events.filter(({ type }) => type === 'journal/not-kept')).toEqual([])
    const copy = killed(state, join(dir.path, 'killed'))
    cpSync(join(dir.path, 'owed'), join(dir.path, 'left'))
    await using next = await life(copy, [join(dir.path, 'left')])
    expect(next.governance.ledger.trust(name, 'echo')).toMatchObject({ epoch: 2 })
    renameSync(join(state, 'journal.away'), at.directory)
    await eventually(() => !existsSync(join(dir.path, 'owed')))
  }
  await using at = await life(state, paths.slice(0, 1))
  await violate(at, state)
  const told = at.events.filter(({ type }) => type === 'journal/not-kept')
  expect(told.map(({ detail }) => detail)).toContainEqual(
    expect.objectContaining({ what: 'owed', reason: expect.stringContaining('a kill loses it') }),
  )
  renameSync(join(state, 'journal.away'), at.directory)
})

test('what was owed is on record once, though a file of it can’t be removed, and that is told', async () => {
  await using dir = await tempDir()
  const owedPaths = [join(dir.path, 'blocked'), join(dir.path, 'journal.owed')]
  mkdirSync(owedPaths[0] ?? '')
  await using at = await life(dir.path, owedPaths)
  await accept(at)
  await violate(at, dir.path)
  renameSync(join(dir.path, 'journal.away'), at.directory)
  for (const _ of ['paid', 'nothing is owed']) await at.governance.consequences.recorded()
  expect(bodies(at, 'trust.violated')).toHaveLength(2)
  expect(at.governance.ledger.trust(name, 'echo')).toMatchObject({ epoch: 2 })
  expect(existsSync(owedPaths[1] ?? '')).toBe(false)
  expect(at.events.at(-1)).toMatchObject({
    type: 'journal/not-kept',
    detail: { what: 'owed-file', reason: expect.stringContaining('the next start records it once more') },
  })
})

test('a head file that can’t be written is told of as that, and the records are kept', async () => {
  await using dir = await tempDir()
  mkdirSync(join(dir.path, 'journal.head.draft', 'in the way'), { recursive: true })
  await using at = await life(dir.path)
  await accept(at)
  const told = await eventually(() => at.events.find(({ type }) => type === 'journal/not-kept'))
  expect(told.detail).toMatchObject({
    what: 'head',
    reason: expect.stringMatching(/^the records are kept; .*EISDIR/),
  })
  expect(bodies(at, 'surface.accepted')).toHaveLength(1)
})

test('what was not written with the journal’s key is named, and takes nothing away', async () => {
  await using dir = await tempDir()
  const path = join(dir.path, 'journal.owed')
  await (await life(dir.path))[Symbol.asyncDispose]()
  const fact = {
    type: 'trust.violated',
    body: { server: name, tool: 'echo', at: '', failure: '', detail: '' },
  }
  const text = JSON.stringify({ version: 1, debts: [{ fact, evidence: {} }], mac: '0'.repeat(64) })
  for (const forged of [`${text}\n`, '']) {
    writeFileSync(path, forged)
    await using at = await life(dir.path)
    expect(at.governance.ledger.trust(name, 'echo')).toMatchObject({ epoch: 0 })
    expect(bodies(at, 'owed.refused').at(-1)).toMatchObject({ path })
    expect(at.events.at(-1)).toMatchObject({ type: 'journal/owed-refused' })
  }
})

test('a journal whose end was cut off begins with a record that says so', async () => {
  await using dir = await tempDir()
  {
    await using at = await life(dir.path)
    await at.governance.consequences.violate(name, ['echo'], 'MP-FH-003', 'it changed')
  }
  const directory = join(dir.path, 'journal')
  const path = segmentPath(directory, listSegments(directory).at(-1) ?? 0)
  writeFileSync(path, `${readFileSync(path, 'utf8').trimEnd().split('\n').slice(0, -1).join('\n')}\n`)
  await using at = await life(dir.path)
  expect(at.events).toMatchObject([{ type: 'journal/shortened', detail: { lost: { seq: 2 } } }])
  expect(bodies(at, 'journal.shortened')).toMatchObject([{ lost: { seq: 2 }, found: { seq: 1 } }])
})

test('a draft that never came to be the file does not stay, of this life or of one that was killed', async () => {
  await using dir = await tempDir()
  const [blocked, free] = [join(dir.path, 'blocked'), join(dir.path, 'free')]
  mkdirSync(blocked) // a folder in its place: the draft is written, and can't be renamed
  writeFileSync(`${free}.draft`, 'half of')
  const redact = (text: string) => ({ text, hits: 0 })
  const redactor = { redact, redactLong: async (text: string) => redact(text) }
  const file = new OwedFile({
    paths: [blocked, free],
    key: Buffer.alloc(32),
    redactor,
    warn: () => undefined,
  })
  expect(file.read().debts).toEqual([])
  expect(existsSync(`${free}.draft`)).toBe(false)
  file.write([])
  expect(existsSync(`${blocked}.draft`)).toBe(false)
  expect(existsSync(free)).toBe(true)
})
