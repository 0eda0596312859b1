// A journal that can't be written blocks every call at once, whatever is wrong with its disk, until it is mended.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import type { SallyportError } from '../../src/errors.ts'
import type { AuditRecord } from '../../src/rpc/governed.ts'
import { configOf, endServe, fixture, main, place, serve } from '../support/daemon.ts'
import type { Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { type Faults, faults } from '../support/fault.ts'
import { following, hearing } from '../support/following.ts'
import { ownDisk } from '../support/own-disk.ts'
import { isRoot } from '../support/user.ts'
import { watching } from '../support/watching.ts'
import { bodiesOf, recordsOf, witness, type Witness } from '../support/witness.ts'

/** Between an answer and the next call of the same caller */
const paceMs = 5

/** Callers that go on calling, each with words of its own. */
class Traffic implements AsyncDisposable {
  readonly failures: SallyportError[] = []
  readonly #ended: Promise<unknown>
  #isOver = false
  #count = 0
  answered = 0

  constructor(host: Client, callers: number) {
    this.#ended = Promise.all(Array.from({ length: callers }, () => this.#run(host)))
  }

  async #run(host: Client): Promise<void> {
    while (!this.#isOver) {
      const text = `traffic-${++this.#count}`
      await delay(paceMs) // without which they take both processors, and every look at the journal is one at thousands of calls
      await host.call('tools/call', { server: 'plain', tool: 'echo', arguments: { text } }).then(
        () => this.answered++,
        (error: SallyportError) => this.failures.push(error),
      )
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.#ended
  }
}

interface Misfortune {
  readonly what: string
  readonly breaks: string
  readonly mends: string
  /** What the refusal says */
  readonly errno: string
  /** Where it is about the segment that is written to: traffic would have gone on to the next one */
  readonly isQuiet?: boolean
  /** Where it takes a disk of its own, which only root can make */
  readonly needsDisk?: boolean
}

const segment = '$(ls journal/*.jsonl | tail -n 1)'
const all: readonly Misfortune[] = [
  {
    what: 'is full (ENOSPC)',
    breaks: 'cat /dev/zero > filler',
    mends: 'rm filler',
    errno: 'ENOSPC',
    needsDisk: true,
  },
  {
    what: 'takes no longer files (EFBIG)',
    breaks: 'prlimit --pid $pid --fsize=32768:',
    mends: 'prlimit --pid $pid --fsize=unlimited:',
    errno: 'EFBIG',
  },
  {
    what: 'becomes read-only (EROFS)',
    breaks: 'mount -o bind,ro journal journal',
    mends: 'umount journal',
    errno: 'EROFS',
    needsDisk: true,
  },
  {
    what: 'loses the journal’s folder (ENOENT)',
    breaks: 'mv journal away',
    mends: 'mv away journal',
    errno: 'ENOENT',
  },
  {
    what: 'has another folder in its place',
    breaks: 'mv journal away && mkdir -m 700 journal',
    mends: 'rmdir journal && mv away journal',
    errno: 'ENOENT',
  },
  {
    what: 'has the segment replaced by an empty file',
    breaks: `s=${segment} && mv $s kept && : > $s`,
    mends: 'mv kept $s',
    errno: 'was replaced',
    isQuiet: true,
  },
  {
    what: 'has the segment replaced by a link to it',
    breaks: `s=${segment} && mv $s kept && ln -s "$PWD/kept" $s`,
    mends: 'mv kept $s',
    errno: 'was replaced',
    isQuiet: true,
  },
  {
    what: 'has the segment replaced by a pipe',
    breaks: `s=${segment} && mv $s kept && mkfifo $s`,
    mends: 'mv kept $s',
    errno: 'was replaced',
    isQuiet: true,
  },
]

const misfortunes = all.filter(({ needsDisk = false }) => isRoot || !needsDisk)

const call = (client: Client, text: string) =>
  client.call('tools/call', { server: 'plain', tool: 'echo', arguments: { text } })

const isRefused = (made: Promise<unknown>): Promise<boolean> =>
  made.then(
    () => false,
    () => true,
  )

async function expectBlocked(host: Client, seen: Witness, errno: string): Promise<void> {
  const before = seen.calls('plain').length
  for (let n = 0; n < 5; n += 1)
    await expect(call(host, 'never')).rejects.toMatchObject({
      code: 'ERR_JOURNAL',
      message: expect.stringContaining(errno),
    })
  expect(seen.calls('plain').length).toBe(before)
}

describe('a disk', () => {
  test('that fails in any way blocks every call in mid-traffic, and none is lost from the record', async () => {
    await using seen = await witness()
    const journal = { segment_bytes: 65_536 }
    await using at = await place(configOf({ plain: seen.entry('plain') }, { journal }))
    await using disk = await ownDisk(at)
    await using operator = disk.client
    await using host = await at.connect('host')
    await using heard = await hearing(operator)
    for (const { what, breaks, mends, errno, isQuiet = false } of misfortunes) {
      await using traffic = new Traffic(host, 8)
      await eventually(() => traffic.answered > 20)
      if (isQuiet) {
        await traffic[Symbol.asyncDispose]()
        await operator.call('audit/query', { limit: 1 }) // whose answer waits for the last outcome
      }
      await disk.sh(breaks)
      if (!isQuiet) await eventually(() => traffic.failures.length > 8)
      await traffic[Symbol.asyncDispose]()
      expect(new Set(traffic.failures.map(({ code }) => code)), what).toEqual(
        new Set(isQuiet ? [] : ['ERR_JOURNAL']),
      )
      // A full disk may have had room for one more record, and still has for an intent where an outcome came with the last one.
      await eventually(
        async () => (await isRefused(call(host, 'never'))) && (await isRefused(call(host, 'never'))),
      )
      await expectBlocked(host, seen, errno)
      await disk.sh(mends)
      await call(host, `after a disk that ${what}`)
      const verified = await operator.call('audit/verify', {})
      expect(verified, what).toMatchObject({ ok: true, flaw: null })
    }
    await heard[Symbol.asyncDispose]()
    const told = heard.events.map(({ type }) => type).filter((type) => type.startsWith('journal/'))
    const count = (type: string): number => told.filter((one) => one === type).length
    expect(count('journal/failed')).toBeGreaterThanOrEqual(misfortunes.length)
    expect(count('journal/mended')).toBe(count('journal/failed'))
    expect(told).toContain('journal/blocked')
    const logged = (await readFile(`${at.folder}/log`, 'utf8')).split('\n')
    const named = logged.filter((line) =>
      /"code":"ERR_JOURNAL","reason":"the journal in .*"msg":"journal can not be written"/.test(line),
    )
    expect(named).toHaveLength(count('journal/failed'))
    expect(logged.filter((line) => line.includes('journal can be written again'))).toHaveLength(named.length)
    const firsts = await disk.sh('for s in journal/*.jsonl; do head -n 1 $s; done')
    const types = firsts
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { type: string }).type)
    expect(types.length).toBeGreaterThan(2)
    expect(new Set(types)).toEqual(new Set(['segment.opened']))
    // Whatever reached the server has an intent that was durable before.
    const intents = new Set(
      (await disk.sh(`cat journal/*.jsonl`))
        .split('\n')
        .filter((line) => line.includes('"type":"call.intent"'))
        .map((line) => (JSON.parse(line) as { body: { request: string } }).body.request),
    )
    const sent = seen.calls('plain').map((line) => JSON.stringify(JSON.parse(line).params))
    expect(sent.filter((params) => !intents.has(params))).toEqual([])
    expect(sent.length).toBeGreaterThan(100)
    await using again = await disk.restart()
    expect(await again.call('audit/verify', {})).toMatchObject({ ok: true })
    // Whatever the disk was, each call's end is known: the daemon kept it until there was a record of it.
    const written = (await disk.sh(`cat journal/*.jsonl`)).trim().split('\n')
    const records = written.map((line) => JSON.parse(line) as { type: string; body: { outcome?: string } })
    const ends = records.filter(({ type }) => type === 'call.outcome').map(({ body }) => body.outcome)
    expect(ends).toHaveLength(records.filter(({ type }) => type === 'call.intent').length)
    expect(ends).not.toContain('unknown')
  })

  test.runIf(isRoot)('has room for short calls still where there was none for a long one', async () => {
    await using seen = await witness()
    await using at = await place(configOf({ plain: seen.entry('plain') }))
    await using disk = await ownDisk(at)
    await using host = await at.connect('host')
    await call(host, 'before')
    await disk.sh('head -c $(( $(df --output=avail -B1 . | tail -n 1) - 262144 )) /dev/zero > filler')
    for (let n = 0; n < 3; n += 1)
      await expect(call(host, `${n}`.repeat(400_000))).rejects.toMatchObject({
        code: 'ERR_JOURNAL',
        message: expect.stringContaining('ENOSPC'),
      })
    for (let n = 0; n < 5; n += 1) await call(host, 'after')
    expect((await disk.sh('ls -A journal/evidence')).trim()).toBe('')
    expect(seen.calls('plain')).toHaveLength(6)
    await disk.client[Symbol.asyncDispose]()
  })

  test.runIf(isRoot)(
    'that is full as a daemon starts is told as that, and keeps no later start',
    async () => {
      await using at = await place()
      await mkdir(at.stateDir, { mode: 0o700 })
      const script = `mount -t tmpfs -o size=65536,mode=700 tmpfs "$1" && { cat /dev/zero > "$1/filler" 2>/dev/null;
      shift; "$@" serve; echo "status $?" >&2; "$@" run -- node; echo "status $?" >&2; }`
      const args = [
        '--mount',
        '--propagation',
        'private',
        'sh',
        '-c',
        script,
        'sh',
        at.stateDir,
        process.execPath,
        main,
      ]
      const { stderr } = await promisify(execFile)('unshare', args, { env: at.env, cwd: at.folder })
      const said = stderr.split('\n').filter((line) => line.includes('ERR_') || line.startsWith('status'))
      const where = `guard: ${at.stateDir}(/run-\\w+)?: No space left`
      const full = expect.stringMatching(new RegExp(`could not be started: .*${where}.*\\(ERR_SHORTAGE\\)$`))
      expect(said).toEqual([full, 'status 1', full, 'status 1'])
      await endServe(await serve(at))
    },
  )

  test('that has no room for a long answer alone blocks every call, and says so as any other', async () => {
    await using at = await place(configOf({ plain: fixture('echo') }, { journal: { evidence_bytes: 1000 } }))
    await using disk = await ownDisk(at)
    await using operator = disk.client
    await using heard = await hearing(operator)
    await call(operator, 'before')
    await disk.sh(': > journal/evidence')
    await call(operator, '"'.repeat(300)) // of which an answer has two backslashes for one
    await eventually(() => isRefused(call(operator, 'may come before that is known')))
    const words = 'evidence of [0-9]+ bytes cannot be kept in .*ENOTDIR'
    for (let n = 0; n < 3; n += 1)
      await expect(call(operator, 'never')).rejects.toMatchObject({
        code: 'ERR_JOURNAL',
        message: expect.stringMatching(words),
      })
    await disk.sh('rm journal/evidence')
    await call(operator, 'after')
    await heard[Symbol.asyncDispose]()
    const health = heard.events.filter(({ type }) => ['journal/failed', 'journal/mended'].includes(type))
    expect(health.map(({ type }) => type)).toEqual(['journal/failed', 'journal/mended'])
    const logged = await readFile(`${at.folder}/log`, 'utf8')
    const failures = logged.match(new RegExp(`"reason":"${words}.*"msg":"journal can not be written"`, 'g'))
    expect(failures).toHaveLength(1)
    expect(logged.match(/journal can be written again/g)).toHaveLength(1)
    expect(await operator.call('audit/verify', {})).toMatchObject({ ok: true })
  })

  test('that is away while an operator holds and takes back has all that on record before the next call', async () => {
    await using seen = await witness()
    await using at = await place(configOf({ plain: seen.entry('plain'), held: seen.entry('held') }))
    const life = await serve(at)
    const [host, journal] = [life.client, join(at.stateDir, 'journal')]
    try {
      await call(host, 'before')
      renameSync(journal, `${journal}.away`)
      for (const asked of [
        () => host.call('servers/hold', { name: 'brake', server: 'held' }),
        () => host.call('trust/reset', { server: 'plain' }),
        () => host.call('permits/revoke', { server: 'plain' }),
      ])
        await expect(asked()).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
      renameSync(`${journal}.away`, journal)
      await Promise.all(['one', 'two', 'three'].map((text) => call(host, text)))
      const types = recordsOf(at.stateDir).map(({ type }) => type)
      const after = types.slice(types.indexOf('call.intent') + 1)
      const owed = ['hold.placed', 'trust.reset', 'permit.revoked']
      for (const type of owed) expect(after).toContain(type)
      expect(after.slice(0, after.indexOf('call.intent'))).toEqual(expect.arrayContaining(owed))
    } finally {
      await endServe(life)
    }
  })

  test('from which permission is taken blocks whoever needs it', async () => {
    await using seen = await witness()
    await using at = await place(configOf({ plain: seen.entry('plain') }))
    await using disk = await ownDisk(at)
    await using host = await at.connect('host')
    await call(host, 'before')
    await disk.sh('chmod 500 journal')
    // Root needs none.
    if (isRoot) await call(host, 'still')
    else await expectBlocked(host, seen, 'EACCES')
    await disk.sh('chmod 700 journal')
    await call(host, 'after')
    await disk.client[Symbol.asyncDispose]()
  })
})

describe('a write', () => {
  describe('that gives an error', () => {
    let seen: Witness
    let at: Place
    let fault: Faults
    let life: Awaited<ReturnType<typeof serve>>
    beforeAll(async () => {
      seen = await witness()
      at = await place(configOf({ plain: seen.entry('plain') }))
      fault = faults(at.folder)
      life = await serve(at, fault.env)
    })
    afterAll(async () => {
      await endServe(life)
      await at[Symbol.asyncDispose]()
      await seen[Symbol.asyncDispose]()
    })
    afterEach(() => fault.disarm())

    test.each(['EIO', 'EFBIG', 'ENOSPC'] as const)('%s, is taken back whole', async (errno) => {
      const { client: host } = life
      await call(host, 'before')
      fault.arm({ errno, needle: '"type":"call.intent"' })
      await expectBlocked(host, seen, errno)
      fault.disarm()
      await call(host, 'after')
      expect(await host.call('audit/verify', {})).toMatchObject({ ok: true, torn: [] })
    })
  })

  test('goes on where a read gives EIO, which whoever follows waits out, and whoever asks is told', async () => {
    await using seen = await witness()
    const journal = { segment_bytes: 65_536, evidence_bytes: 1_048_576 }
    await using at = await place(configOf({ plain: seen.entry('plain') }, { journal }))
    const fault = faults(at.folder)
    const life = await serve(at, fault.env)
    const { client: host } = life
    const heard: AuditRecord[] = []
    const follow = (waiting: object) => host.audit({ from: 'oldest', limit: 1, ...waiting })
    const follower = await following(
      ({ signal, subscribed }) => (subscribed(), follow({ signal })),
      (record: AuditRecord) => heard.push(record),
    )
    await call(host, 'before')
    await eventually(() => heard.at(-1)?.type === 'call.outcome')
    fault.arm({ read: 'EIO' })
    for (let n = 0; n < 3; n += 1) await call(host, `${n}`.repeat(70_000)) // each in a segment of its own
    await expect(host.call('audit/query', { limit: 1 })).rejects.toMatchObject({
      code: 'ERR_JOURNAL',
      message: expect.stringContaining('(EIO)'),
    })
    fault.disarm()
    const { head } = await host.call('audit/query', { limit: 1 })
    await eventually(() => heard.at(-1)?.seq === head.seq)
    await follower[Symbol.asyncDispose]()
    await endServe(life)
    const written = recordsOf(at.stateDir).slice(0, heard.length)
    expect(heard.map(({ seq, type }) => ({ seq, type }))).toEqual(
      written.map(({ seq, type }) => ({ seq, type })),
    )
  })

  test('that fails half-way, and cannot be taken back, is told of by the next segment', async () => {
    await using seen = await witness()
    await using at = await place(configOf({ plain: seen.entry('plain') }))
    const fault = faults(at.folder)
    const { process, client } = await serve(at, fault.env)
    await using host = client
    await call(host, 'before')
    fault.arm({ torn: 'EIO', needle: 'before it breaks' })
    await expect(call(host, 'before it breaks')).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
    fault.disarm()
    await call(host, 'after')
    const found = await host.call('audit/verify', {})
    expect(found).toMatchObject({ ok: true, torn: [{ segment: 1 }] })
    const ended = once(process, 'exit')
    process.kill('SIGTERM')
    await ended
    const opened = bodiesOf(at.stateDir, 'segment.opened').map(({ torn }) => torn)
    expect(opened).toEqual([null, found.torn[0]])
    expect(seen.calls('plain').join()).not.toContain('before it breaks')
  })

  test('that fails at the first record of a segment leaves no segment without it', async () => {
    await using seen = await witness()
    const journal = { segment_bytes: 65_536, evidence_bytes: 1_048_576 }
    await using at = await place(configOf({ plain: seen.entry('plain') }, { journal }))
    const fault = faults(at.folder)
    const { process, client } = await serve(at, fault.env)
    await using host = client
    fault.arm({ errno: 'EIO', needle: '"type":"segment.opened"' })
    await call(host, 'x'.repeat(70_000)) // its outcome would be the first of the next segment
    await expectBlocked(host, seen, 'EIO')
    fault.disarm()
    await call(host, 'after')
    expect(await host.call('audit/verify', {})).toMatchObject({ ok: true, torn: [] })
    const ended = once(process, 'exit')
    process.kill('SIGTERM')
    await ended
    const records = recordsOf(at.stateDir)
    const firsts = records.filter(({ segment: one }, n) => one !== records[n - 1]?.segment)
    expect(firsts.map(({ type }) => type)).toEqual(firsts.map(() => 'segment.opened'))
    const ends = bodiesOf(at.stateDir, 'call.outcome').map(({ outcome }) => outcome)
    expect(ends).toEqual(['result', 'result']) // that one, too, once there was room for it
  })

  test('whose sync gives EIO is taken back whole, and is not in the next life either', async () => {
    await using seen = await witness()
    const journal = { durability: 'fsync' }
    await using at = await place(configOf({ plain: seen.entry('plain') }, { journal }))
    const fault = faults(at.folder)
    const { process, client } = await serve(at, fault.env)
    await using host = client
    await call(host, 'before')
    fault.arm({ sync: 'EIO' })
    await expectBlocked(host, seen, 'EIO')
    fault.disarm()
    await call(host, 'after')
    expect(await host.call('audit/verify', {})).toMatchObject({ ok: true, torn: [] })
    const ended = once(process, 'exit')
    process.kill('SIGTERM')
    await ended
    const { process: next, client: after } = await serve(at)
    await using _after = after
    const intents = bodiesOf(at.stateDir, 'call.intent').map(({ request }) => String(request))
    expect(intents.filter((request) => request.includes('never'))).toEqual([])
    expect(intents).toHaveLength(2)
    expect(await after.call('audit/verify', {})).toMatchObject({ ok: true, torn: [], shortened: [] })
    next.kill('SIGTERM')
    await once(next, 'exit')
  })

  test.each([
    ['whose sync gives EIO', { sync: 'EIO' }],
    ['whose sync gives EIO, and which can’t be cut off,', { stuck: 'EIO' }],
  ] as const)('%s makes no yes that was refused come true, whenever the daemon is killed', async (_, how) => {
    await using seen = await witness()
    const config = { journal: { durability: 'fsync' }, rules: [{ permission: 'mcp:*:*', action: 'ask' }] }
    await using at = await place(configOf({ plain: seen.entry('plain') }, config))
    const fault = faults(at.folder)
    const { process, client } = await serve(at, fault.env)
    await using operator = client
    const host = await at.connect('host')
    await host.call('servers/start', { server: 'plain' })
    await using watch = await watching(operator, undefined, { mayEnd: true })
    const made = call(host, 'never').catch(() => undefined)
    const { id } = await watch.next()
    fault.arm(how)
    const refused = operator.call('approvals/approve', { id, scope: 'policy' })
    await expect(refused).rejects.toMatchObject({ code: 'ERR_JOURNAL' })
    process.kill('SIGKILL')
    await once(process, 'exit')
    fault.disarm()
    await made
    const { process: next, client: after } = await serve(at)
    await using _after = after
    expect((await after.call('approvals/list', {})).standing).toEqual([])
    expect(bodiesOf(at.stateDir, 'approval.standing')).toEqual([])
    expect(await after.call('audit/verify', {})).toMatchObject({ ok: true, torn: [] })
    await host[Symbol.asyncDispose]()
    next.kill('SIGTERM')
    await once(next, 'exit')
  })
})
