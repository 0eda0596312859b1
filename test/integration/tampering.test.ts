// A daemon's journal with every kind of record that operators and hosts can bring about, each field of which is then changed.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { listSegments, segmentPath } from '../../src/journal/segments.ts'
import { verifyJournal } from '../../src/journal/verify.ts'
import { recordTypes, type RecordType } from '../../src/schema/record-type.ts'
import { configOf, daemon, endServe, fixture, place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { watching } from '../support/watching.ts'

const rules = [
  { permission: 'mcp:asked:*', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]
const config = (more: object = {}): object =>
  configOf(
    {
      plain: fixture('echo'),
      asked: fixture('echo'),
      notes: fixture('resources'),
      pull: fixture('rug-pull', { surface: 'dynamic' }),
      ...more,
    },
    {
      rules,
      dynamic: { enabled: true, profile: 'node', tools: { allow: ['echo'] } },
      journal: { evidence_bytes: 1024 },
    },
  )

let at: TestDaemon
let directory: string
let key: Buffer
beforeAll(async () => {
  at = await daemon(config())
  directory = join(at.stateDir, 'journal')
  await using host = await at.connect('host')
  await live(at.client, host)
  key = readFileSync(join(at.stateDir, 'journal.key'))
}, 60_000)
afterAll(() => at[Symbol.asyncDispose]())

/** Brings about what can be recorded. */
async function live(operator: Client, host: Client): Promise<void> {
  const call = (server: string, args: Record<string, unknown> = {}, tool = 'echo') =>
    host.call('tools/call', { server, tool, arguments: args }).catch(() => null)
  await call('plain', { text: 'short' })
  await call('plain', { text: 'long '.repeat(1000) })
  {
    await using _watch = await watching(operator, ({ id, text }) =>
      text.includes('yes')
        ? operator.call('approvals/approve', { id, scope: 'policy' })
        : operator.call('approvals/deny', { id, reason: 'no' }),
    )
    for (const answer of ['yes', 'no', 'yes, too']) await call('asked', { answer })
  }
  const { standing } = await operator.call('approvals/list', {})
  await operator.call('approvals/deny', { id: standing[0]?.id ?? '' })
  await operator.call('trust/reset', { server: 'asked', tool: 'echo' })
  await operator.call('servers/hold', { server: 'plain' })
  await call('plain')
  await operator.call('servers/release', { name: 'plain' })
  await operator.call('permits/revoke', { server: 'plain' })
  {
    using subscriber = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
    await subscriber.ask('session/attach', { server: 'notes' })
    const clientInfo = { name: 'host', version: '1' }
    await subscriber.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
    subscriber.tell('notifications/initialized')
    await subscriber.ask('resources/subscribe', { uri: 'note://first' })
    await operator.call('servers/hold', { server: 'notes' })
    await operator.call('servers/release', { name: 'notes' })
  }
  await call('pull', {}, 'poison')
  await call('pull')
  await operator.call('servers/quarantine', { server: 'pull' })
  await operator.call('servers/release', { name: 'pull' })
  const more = { version: '1', justification: 'a test', tags: [] }
  await operator.call('servers/add', { server: 'added', entry: { ...fixture('echo', more) } })
  await operator.call('servers/remove', { server: 'added' })
  const code = { source: join(import.meta.dirname, '../fixtures/servers'), target: '/app' }
  await host.call('servers/launch', { name: 'mine', command: 'node', args: ['/app/echo.mjs'], package: code })
  writeFileSync(at.config, 'version: 2')
  await at.run(['reload'])
  writeFileSync(at.config, JSON.stringify(config({ other: fixture('echo') })))
  await at.run(['reload'])
  // A last line that does not end as a record does counts as cut off: so none of those that are changed is the last.
  await call('plain')
  await isAtRest(operator)
}

/** An outcome is written behind its answer: what is changed before it would be changed back by it, or without it. */
const isAtRest = (operator: Client) =>
  eventually(async () => {
    const { records } = await operator.call('audit/query', { limit: 1 })
    return records[0]?.type === 'call.outcome'
  })

type Json = Record<string, unknown>

/** Every value that is no object with members, with the way to it. */
function leaves(value: unknown, way: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [way]
  const inner = Object.entries(value)
  return inner.length === 0 ? [way] : inner.flatMap(([name, one]) => leaves(one, [...way, name]))
}

/** Another value of the same kind. */
function another(value: unknown): unknown {
  if (typeof value === 'string')
    return /^[0-9a-f]{64}$/.test(value) ? `${value[0] === '0' ? 1 : 0}${value.slice(1)}` : `${value}x`
  if (typeof value === 'number') return value + 1
  if (typeof value === 'boolean') return !value
  return value === null ? 'x' : { x: 1 }
}

function changed(record: Json, way: readonly string[]): Json {
  const [name = '', ...rest] = way
  const value = record[name]
  return { ...record, [name]: rest.length === 0 ? another(value) : within(value, rest) }
}
const within = (value: unknown, way: readonly string[]): unknown =>
  Array.isArray(value)
    ? value.map((item, n) =>
        String(n) !== way[0] ? item : way.length === 1 ? another(item) : within(item, way.slice(1)),
      )
    : changed(value as Json, way)

/** What nothing here makes a record of: a network, credentials, images, a disk that is full, what `keep_days` lets go of */
const absent: ReadonlySet<string> = new Set<RecordType>([
  'credential.blocked',
  'credential.failed',
  'egress.closed',
  'egress.connected',
  'egress.refused',
  'image.changed',
  'image.pinned',
  'journal.pruned',
  'journal.shortened',
  'logs.dropped',
  'owed.refused',
  'runs.pruned',
  'snapshot.refused',
])

describe('audit verify', () => {
  test('names the line of whatever field of whatever kind of record was changed, or taken out, or where its batch begins', () => {
    const path = segmentPath(directory, listSegments(directory)[0] ?? 0)
    const text = readFileSync(path, 'utf8')
    const lines = text.trimEnd().split('\n')
    const firsts = new Map<string, number>()
    for (const [n, line] of lines.entries()) {
      const { type } = JSON.parse(line) as { type: string }
      if (!firsts.has(type)) firsts.set(type, n)
    }
    expect([...firsts.keys()].toSorted()).toEqual(recordTypes.filter((type) => !absent.has(type)))
    let changes = 0
    for (const [type, n] of firsts) {
      const record = JSON.parse(lines[n] ?? '') as Json
      expect(JSON.stringify(record)).toBe(lines[n])
      const batch = lines.slice(0, n).findLastIndex((line) => line.includes('","mac":"')) + 1
      const without = Object.keys(record)
        .filter((name) => name !== 'mac') // what the next MAC vouches for too, and test/journal has
        .map(
          (name) =>
            [name, Object.fromEntries(Object.entries(record).filter(([one]) => one !== name))] as const,
        )
      const all = [...leaves(record).map((way) => [way.join('.'), changed(record, way)] as const), ...without]
      for (const [what, other] of all) {
        writeFileSync(path, `${lines.with(n, JSON.stringify(other)).join('\n')}\n`)
        const { flaw } = verifyJournal(directory, key)
        const line = flaw?.line === batch + 1 ? n + 1 : flaw?.line
        expect({ type, what, line, path: flaw?.path }).toEqual({ type, what, line: n + 1, path })
        changes += 1
      }
    }
    writeFileSync(path, text)
    expect(changes).toBeGreaterThan(400)
    expect(verifyJournal(directory, key)).toMatchObject({ ok: true, sidecars: 2 })
  })

  test('reads what lies beside the journal, and ends with 4 and the line where it is not what was said', async () => {
    const whole = await at.run(['audit', 'verify'])
    expect(whole).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/beside it +2 files of evidence/),
    })
    const { records } = await at.client.call('audit/query', { type: 'call.intent', limit: 1000 })
    const long = records.find(({ body }) => typeof (body as { request: unknown }).request === 'object')
    const { request } = (long?.body ?? {}) as { request: { path: string } }
    const file = join(directory, request.path)
    const text = readFileSync(file)
    for (const [change, words] of [
      [() => writeFileSync(file, 'something else'), 'it was changed'],
      [() => rmSync(file), 'the file is missing'],
    ] as const) {
      change()
      for (const where of [[], ['--state', at.stateDir]]) {
        const { status, stdout } = await at.run(['audit', 'verify', ...where])
        expect(status).toBe(4)
        expect(stdout).toContain(`00000001.jsonl:${long?.seq}: evidence: record ${long?.seq}: its request`)
        expect(stdout).toContain(words)
      }
    }
    writeFileSync(file, text)
    expect((await at.run(['audit', 'verify'])).status).toBe(0)
  })

  test('is red where the key is gone, with which it could have been written anew; a copy is verified without', async () => {
    const copy = join(at.folder, 'copy')
    cpSync(at.stateDir, copy, { recursive: true, filter: (path) => !path.includes('/outputs') })
    const verify = (...options: readonly string[]) => at.run(['audit', 'verify', '--state', copy, ...options])
    expect((await verify()).status).toBe(0)
    rmSync(join(copy, 'journal.key'))
    const lost = await verify()
    expect(lost.status).toBe(4)
    expect(lost.stdout).toMatch(/flaw +\S+copy\/journal\.key:0: key: it is missing, so no MAC was checked/)
    const bare = await verify('--no-key')
    expect(bare.status).toBe(0)
    expect(bare.stdout).toContain('there is no key, so no MAC was checked')
  })

  test('knows by the head file beside it that all of a journal was taken away', async () => {
    const elsewhere = join(at.folder, 'elsewhere')
    mkdirSync(elsewhere)
    for (const name of ['journal.key', 'journal.head']) cpSync(join(at.stateDir, name), join(elsewhere, name))
    const { status, stdout } = await at.run(['audit', 'verify', '--state', elsewhere])
    expect(status).toBe(4)
    expect(stdout).toMatch(
      /flaw +\S+journal\.head:0: head: the last known record \d+ .* was cut off or rewritten/,
    )
    rmSync(join(elsewhere, 'journal.head'))
    expect((await at.run(['audit', 'verify', '--state', elsewhere])).status).toBe(8)
  })

  test('is red without the head file, which shows an end that was cut off, unless an anchor does', async () => {
    const copy = join(at.folder, 'headless')
    mkdirSync(copy)
    for (const name of ['journal', 'journal.key'])
      cpSync(join(at.stateDir, name), join(copy, name), { recursive: true })
    const verify = (...options: readonly string[]) => at.run(['audit', 'verify', '--state', copy, ...options])
    const lost = await verify()
    expect(lost.status).toBe(4)
    expect(lost.stdout).toMatch(/flaw +\S+headless\/journal\.head:0: head: it is missing, so an end/)
    const { seq, hash } = verifyJournal(directory, key).head
    expect((await verify('--anchor', `${seq}:${hash}`)).status).toBe(0)
    expect((await verify('--no-key')).status).toBe(0)
  })

  test('says of a segment that is too long to be read that it is that, and not that it is forged', async () => {
    const elsewhere = join(at.folder, 'too-long')
    mkdirSync(elsewhere)
    for (const name of ['journal', 'journal.key', 'journal.head'])
      cpSync(join(at.stateDir, name), join(elsewhere, name), { recursive: true })
    truncateSync(segmentPath(join(elsewhere, 'journal'), 1), 3 * 2 ** 30)
    const { status, stdout, stderr } = await at.run(['audit', 'verify', '--state', elsewhere])
    rmSync(elsewhere, { recursive: true })
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toContain(
      '00000001.jsonl has 3221225472 bytes, and at most 2147483647 are read, so whether',
    )
  })

  test('asks the daemon that runs where its journal ends: an end that was cut off at a border is seen', async () => {
    const path = segmentPath(directory, listSegments(directory).at(-1) ?? 0)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1))
    const { status, stdout } = await at.run(['audit', 'verify', '--json'])
    expect(status).toBe(4)
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, flaw: { kind: 'head' } })
    // Nothing is written behind an end that is not the one that was written.
    await expect(
      at.client.call('tools/call', { server: 'plain', tool: 'echo', arguments: {} }),
    ).rejects.toMatchObject({
      code: 'ERR_JOURNAL',
    })
    writeFileSync(path, text)
    expect((await at.client.call('tools/call', { server: 'plain', tool: 'echo', arguments: {} })).type).toBe(
      'output',
    )
    await isAtRest(at.client)
  })
})

/** Which batch a line is of, by the lines that end one. */
const batchAt = (ends: readonly number[], place: number): number => ends.findIndex((end) => place <= end)

test('an export that lacks a record ends there, with the number of that one and no anchor', async () => {
  const path = segmentPath(directory, listSegments(directory).at(-1) ?? 0)
  const text = readFileSync(path, 'utf8')
  onTestFinished(() => writeFileSync(path, text))
  const lines = text.trimEnd().split('\n')
  const numbers = lines.map((line) => (JSON.parse(line) as { seq: number }).seq)
  const without = (...places: readonly number[]): void =>
    writeFileSync(path, `${lines.filter((_, n) => !places.includes(n)).join('\n')}\n`)
  // Which records are of one batch is the machine's to say.
  const ends = lines.flatMap((line, n) => (line.includes(',"mac":"') ? [n] : []))
  const ofBatch = (n: number): number[] =>
    lines.flatMap((_, place) => (batchAt(ends, place) === n ? [place] : []))
  const [opening, closing] = [[...ofBatch(0), ...ofBatch(1)], ofBatch(ends.length - 1)]
  const second = opening.length
  for (const [places, lacking] of [
    [[second], numbers[second]],
    [closing, numbers[closing[0] ?? 0]],
  ] as const) {
    without(...places)
    const { status, stderr } = await at.run(['audit', 'export'])
    expect({ status, stderr }).toEqual({
      status: 8,
      stderr: expect.stringContaining(`record ${lacking} was written and is not to be found`),
    })
    expect(stderr).not.toContain('anchor')
  }
  // What it begins with may have been let go of: that is for a verification to say.
  without(...opening)
  const { status, stdout, stderr } = await at.run(['audit', 'export', '--after', `${numbers[0] ?? 0}`])
  expect([status, stdout.split('\n').length - 1]).toEqual([0, lines.length - opening.length])
  expect(stderr).toContain(`begins with record ${numbers[second]}: what came before`)
  const verified = await at.run(['audit', 'verify'])
  expect(verified.status).toBe(4)
  expect(verified.stdout).not.toContain('keep_days')
  writeFileSync(path, text)
  expect((await at.run(['audit', 'export'])).status).toBe(0)
})

test('an export is the journal, byte for byte, as far as it is what was written', async () => {
  const segments = listSegments(directory).map((segment) => segmentPath(directory, segment))
  const written = segments.map((path) => readFileSync(path, 'utf8')).join('')
  const whole = await at.run(['audit', 'export'])
  expect([whole.status, whole.stdout]).toEqual([0, written])
  const path = segments[0] ?? ''
  const text = readFileSync(path, 'utf8')
  onTestFinished(() => writeFileSync(path, text))
  const lines = text.trimEnd().split('\n')
  const ends = lines.flatMap((line, n) => (line.includes(',"mac":"') ? [n] : []))
  const numberOf = (n: number): number => (JSON.parse(lines[n] ?? '') as { seq: number }).seq
  for (const batch of [1, Math.floor(ends.length / 2)]) {
    const [first, last] = [(ends[batch - 1] ?? 0) + 1, ends[batch] ?? 0]
    const altered = lines.with(first, (lines[first] ?? '').replace('"separation":"', '"separation":"x'))
    writeFileSync(path, `${altered.join('\n')}\n`)
    const { status, stdout, stderr } = await at.run(['audit', 'export'])
    expect([status, stdout]).toEqual([4, `${lines.slice(0, first).join('\n')}\n`])
    expect(stderr).toContain(`nothing from record ${numberOf(first)} on is exported`)
    expect(stderr).not.toContain('anchor')
    const behind = await at.run(['audit', 'export', '--after', `${numberOf(last)}`])
    expect([behind.status, behind.stdout]).toEqual([
      0,
      written.slice(lines.slice(0, last + 1).join('\n').length + 1),
    ])
  }
})

test.each([
  [
    'its hash is none',
    (_batch: string, line: string) => line.replace(/"hash":"[0-9a-f]{64}"/, '"hash":null'),
  ],
  [
    'it was written anew, hash and all',
    (batch: string, line: string) => {
      const anew = `${batch}${line}`.replaceAll('"separation":"none"', '"separation":"full"')
      const digest = hash('sha256', anew.slice(0, anew.lastIndexOf(',"hash":"')))
      return anew
        .slice(anew.lastIndexOf('\n', anew.length - 2) + 1)
        .replace(/"hash":"[0-9a-f]{64}"/, `"hash":"${digest}"`)
    },
  ],
])('an export has no anchor where the last batch is not what the daemon wrote: %s', async (_how, change) => {
  const path = segmentPath(directory, listSegments(directory).at(-1) ?? 0)
  const text = readFileSync(path, 'utf8')
  const lines = text.trimEnd().split('\n')
  const begins = lines.findLastIndex((line, n) => n < lines.length - 1 && line.includes(',"mac":"')) + 1
  const batch = lines
    .slice(begins, -1)
    .map((line) => `${line}\n`)
    .join('')
  const last = change(batch, lines.at(-1) ?? '')
  const isAnew = !last.includes('"hash":null')
  const before = lines
    .slice(0, begins)
    .map((line) => `${line}\n`)
    .join('')
  writeFileSync(
    path,
    `${before}${isAnew ? batch.replaceAll('"separation":"none"', '"separation":"full"') : batch}${last}\n`,
  )
  const { status, stderr } = await at.run(['audit', 'export'])
  expect(status).not.toBe(0)
  expect(stderr).not.toContain('anchor ')
  writeFileSync(path, text)
})

describe('a journal in a state folder is read without a daemon', () => {
  const copied = (name: string): string => {
    const copy = join(at.folder, name)
    cpSync(at.stateDir, copy, { recursive: true, filter: (path) => !path.includes('/outputs') })
    return copy
  }
  const records = (stdout: string) => (JSON.parse(stdout) as { records: readonly { seq: number }[] }).records

  test('by tail, show and export, which say what the daemon says of the same records', async () => {
    const state = ['--state', copied('read-whole')]
    const tail = ['audit', 'tail', '-n', '5', '--json', '--type', 'call.*']
    const whole = await at.run([...tail, ...state])
    expect(whole).toMatchObject({ status: 0, stderr: '' })
    expect(records(whole.stdout)).toEqual(records((await at.run(tail)).stdout))
    const { call } = (records(whole.stdout)[0] as unknown as { body: { call: string } }).body
    for (const which of ['3', call]) {
      const shown = await at.run(['audit', 'show', which, ...state])
      expect(shown).toEqual(await at.run(['audit', 'show', which]))
      expect(shown.status).toBe(0)
    }
    const exported = await at.run(['audit', 'export', ...state])
    expect(exported.status).toBe(0)
    expect(exported.stderr).toMatch(/^anchor \d+:[0-9a-f]{64}\n/)
    expect(exported.stdout).toBe(
      listSegments(join(state[1] ?? '', 'journal'))
        .map((segment) => readFileSync(segmentPath(join(state[1] ?? '', 'journal'), segment), 'utf8'))
        .join(''),
    )
  })

  test('with a word where it is not what was written any more, and an export that ends there', async () => {
    const folder = copied('read-flawed')
    const path = segmentPath(join(folder, 'journal'), 1)
    const lines = readFileSync(path, 'utf8').split('\n')
    const batch = lines.findIndex((line) => line.includes('"mac":')) + 1
    const changed = lines.with(batch, (lines[batch] ?? '').replace('"at":"2', '"at":"1'))
    writeFileSync(path, changed.join('\n'))
    const words = `the journal is NOT what was written from ${path}:${batch + 1} on: hash: `
    for (const verb of [['tail'], ['show', '1'], ['export']]) {
      const read = await at.run(['audit', ...verb, '--state', folder])
      expect(read.stderr).toContain(words)
      expect(read.status).toBe(4)
      expect(read.stdout).not.toBe('')
    }
    const { stdout } = await at.run(['audit', 'export', '--state', folder])
    expect(stdout).toBe(
      lines
        .slice(0, batch)
        .map((line) => `${line}\n`)
        .join(''),
    )
  })

  test('with no sign in it that a terminal would obey, whatever it was changed to', async () => {
    const folder = copied('read-escapes')
    const path = segmentPath(join(folder, 'journal'), 1)
    const lines = readFileSync(path, 'utf8').split('\n')
    const changed = lines.map((line) =>
      line
        .replace(/"at":"[^"]*"/, '"at":"\\u001b[2Jall is well"')
        .replace('"body":{', '"body":{"\\u001b[31mkey":1,'),
    )
    writeFileSync(path, changed.join('\n').replace(/"at":"[^"]*"/, '"at":7'))
    for (const verb of [
      ['tail', '-n', '20'],
      ['show', '3'],
    ]) {
      const read = await at.run(['audit', ...verb, '--state', folder])
      expect(read.status).toBe(4)
      expect(read.stdout).toContain('all is well')
      expect(read.stdout).not.toContain('\u001b')
    }
  })

  test('with a word where its key or its head file is gone, and without waiting for what is neither', async () => {
    const folder = copied('read-without')
    for (const name of ['journal.head', 'journal.key']) {
      rmSync(join(folder, name))
      const read = await at.run(['audit', 'tail', '--state', folder])
      expect(read).toMatchObject({ status: 0, stderr: expect.stringContaining(`${name}: it is missing`) })
    }
    execFileSync('mkfifo', [join(folder, 'journal.key')])
    const read = await at.run(['audit', 'tail', '--state', folder])
    expect(read.status).not.toBe(0)
    expect(read.stderr).toContain('is no plain file')
  })

  test('where a type is one of a journal’s', async () => {
    const read = await at.run(['audit', 'tail', '--type', 'call.outcom', '--state', copied('read-type')])
    expect(read).toMatchObject({ status: 7, stderr: expect.stringContaining('did you mean call.outcome') })
  })

  test('where there is one, and not as it comes', async () => {
    const nothing = await at.run(['audit', 'tail', '--state', at.folder])
    expect(nothing).toMatchObject({ status: 8, stderr: expect.stringContaining('holds no journal') })
    const followed = await at.run(['audit', 'tail', '-f', '--state', at.stateDir])
    expect(followed).toMatchObject({
      status: 7,
      stderr: expect.stringContaining('--follow goes with neither'),
    })
    expect((await at.run(['audit', 'show', '1', '--run', 'x'])).status).toBe(7)
  })
})

test('a start says in its log what of the journal it found cut off, or could not use, and what it can’t keep', async () => {
  await using at = await place(config())
  await endServe(await serve(at))
  const [head, owed] = [join(at.stateDir, 'journal.head'), join(at.stateDir, 'journal.owed')]
  const snapshot = join(at.stateDir, 'journal', 'snapshots', '0000000000000001.json')
  rmSync(head)
  mkdirSync(head)
  mkdirSync(dirname(snapshot), { recursive: true })
  for (const file of [owed, snapshot]) writeFileSync(file, 'forged\n')
  const started = at.start(['serve'])
  let log = ''
  started.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const said = (words: string): Record<string, unknown> | undefined =>
    log
      .split('\n')
      .filter((line) => line.includes(`"msg":"${words}"`))
      .map((line) => JSON.parse(line) as Record<string, unknown>)[0]
  await eventually(() => said('what goes with the journal could not be kept') !== undefined)
  started.kill('SIGTERM')
  await once(started, 'exit')
  expect(said('the end of the journal is missing, or may be')).toMatchObject({
    level: 'warn',
    lost: null,
    reason: expect.stringContaining('head file is not to be used'),
  })
  expect(said('a snapshot of the journal is not to be used')).toMatchObject({
    level: 'warn',
    path: snapshot,
    reason: expect.any(String),
  })
  expect(said('what was owed to the journal is not to be used')).toMatchObject({ level: 'warn', path: owed })
  expect(said('what goes with the journal could not be kept')).toMatchObject({ level: 'warn', what: 'head' })
  const { status, stderr } = await at.run(['audit', 'verify'])
  expect(status).toBe(4)
  expect(stderr).toMatch(/^record \d+ tells that a start had no head file that it could use; who knows why/m)
})
