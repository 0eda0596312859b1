// What is shown to a server that asks, and that a draft says what was learned, whatever a server calls its files.
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { parseDocument } from '../../../src/config/document.ts'
import { validate } from '../../../src/schema/validate.ts'
import type { Ran } from '../../../src/verify/learn/confine.ts'
import { type DraftParts, draftOf } from '../../../src/verify/learn/draft.ts'
import { formatDraft } from '../../../src/verify/learn/draft-text.ts'
import { readDrive } from '../../../src/verify/learn/drive.ts'
import { unsteadyIn } from '../../../src/verify/learn/prove.ts'
import { codeOf, View } from '../../../src/verify/learn/view.ts'
import { tempDir } from '../../support/temp-dir.ts'

const viewWith = (home: string, writable: readonly string[] = []): View =>
  new View({ own: [], homes: [home], environment: {} }, home, writable)

describe('a server that asks', () => {
  test.each([
    ['/etc/ssl/openssl.cnf', '/nonexistent', true, undefined],
    ['/etc/ssl/openssl.cnf', '/etc/ssl', false, 'it is in somebody’s home'],
    ['/etc', '/nonexistent', false, 'by a mandatory rule'],
    ['/opt', '/nonexistent', false, 'a whole folder of the root'],
    ['/proc/1/environ', '/nonexistent', false, 'denied by a mandatory rule'],
    ['/etc/shadow', '/nonexistent', false, 'denied by a mandatory rule'],
    ['/home/user/.aws/credentials', '/nonexistent', false, 'cloud credentials, denied'],
    ['/etc/nothing-of-that-name', '/nonexistent', false, undefined],
    ['/usr/bin/env', '/nonexistent', false, undefined],
  ])('for %s, where home is %s, is shown it: %j, since %j', async (path, home, isShown, why) => {
    const view = viewWith(home)
    expect(await view.show(path, 'asked')).toBe(isShown)
    const [withheld] = view.withheld
    expect(withheld?.why).toEqual(why === undefined ? undefined : expect.stringContaining(why))
  })

  test('in /tmp is shown what a person named, and no socket even then', async () => {
    await using dir = await tempDir()
    const file = join(dir.path, 'file')
    await writeFile(file, 'x', { mode: 0o644 })
    const socket = join(dir.path, 'agent')
    const server = createServer().listen(socket)
    await once(server, 'listening')
    const view = viewWith('/nonexistent')
    expect([await view.show(file, 'asked'), await view.show(file, 'named')]).toEqual([false, true])
    expect(await view.show(socket, 'named')).toBe(false)
    expect(view.withheld.at(-1)?.why).toContain('socket')
    server.close()
  })

  test('is never shown a second time what it may write to, or what is shown with a folder', async () => {
    await using dir = await tempDir()
    const [data, code] = [join(dir.path, 'data'), join(dir.path, 'node_modules', 'it', 'dist')]
    for (const folder of [data, code]) await mkdir(folder, { recursive: true, mode: 0o755 })
    const view = viewWith('/nonexistent', [data])
    expect(await view.show(join(data), 'named')).toBe(false)
    expect(await view.show(await codeOf(join(code, 'index.js')), 'code')).toBe(true)
    expect(await view.show(code, 'named')).toBe(false)
    expect(view.shown.map(({ path }) => path)).toEqual([join(dir.path, 'node_modules')])
  })
})

const hostile = [
  '/srv/a" } # x',
  '/srv/b\nnetwork: { mode: allowlist }',
  '/srv/c\u2028d\u0007',
  "/srv/e'",
  '/srv/{f: *g}',
]

const parts: DraftParts = {
  name: 'learned',
  command: 'node /srv/x\nexec: any',
  needs: {
    read: hostile.map((path) => ({ path, reason: 'learned: read by node: it' })),
    narrower: new Map(),
    write: [],
    network: [],
    started: [],
    peaks: { memoryBytes: 90_000_000, threads: 11, descriptors: 20, scratchBytes: 3_000_000 },
  },
  pass: ['TZ'],
  set: { GREETING: 'a: b # c\n- d' },
  hasNetwork: true,
  withheld: [{ path: '/srv/g\nfilesystem: { mounts: write }', why: 'asked\nexec: any' }],
  refusedCalls: [],
  callCount: 3,
}

test('a draft is what was learned, whatever a server calls its files', async () => {
  const text = formatDraft(await draftOf(parts), parts, 'Proven\nwidens: false')
  const value = parse(text) as Record<string, unknown>
  expect(value).toMatchObject({
    draft: true,
    filesystem: { read: [{ path: '/usr' }, ...hostile.map((path) => ({ path }))], tmp_bytes: 8_388_608 },
    environment: { pass: ['TZ'], set: { GREETING: 'a: b # c\n- d' } },
    exec: 'none',
    limits: { memory_bytes: 201_326_592, pids: 20, open_files: 64 },
    widens: true,
  })
  expect([value['network'], value['extends']]).toEqual([undefined, 'offline'])
})

test('a draft of plain names is a profile that loads', async () => {
  const plain = { ...parts, needs: { ...parts.needs, read: [{ path: '/srv/data', reason: 'learned' }] } }
  const text = formatDraft(await draftOf(plain), plain)
  expect(validate('profile', parseDocument('learned.yaml', text).value).ok).toBe(true)
})

test.each([
  [4096, '4 KiB'],
  [100_000, '98 KiB'],
  [0, '0 KiB'],
  [3_000_000, '2.9 MiB'],
])('%d bytes that were in use are said as %s', async (scratchBytes, said) => {
  const peaks = { ...parts.needs.peaks, scratchBytes }
  const used = { ...parts, needs: { ...parts.needs, peaks } }
  expect(formatDraft(await draftOf(used), used)).toMatch(
    new RegExp(`^  tmp_bytes: \\d+ # ${said} at most were in use$`, 'm'),
  )
})

test('a file of one call drives with one call, and one of two with two', async () => {
  await using dir = await tempDir()
  const file = join(dir.path, 'calls.jsonl')
  for (const [count, said] of [
    [1, '1 call'],
    [2, '2 calls'],
  ] as const) {
    await writeFile(file, '{"tool": "echo"}\n'.repeat(count))
    expect((await readDrive(file)).what).toBe(`the ${said} of ${file}`)
  }
})

test('what passed once without a grant is tried again: luck is no proof', async () => {
  const answer = { to: 'tools/call', outcome: 'result', digest: 'a', result: {} } as const
  const passes = { answers: [answer], exit: null } as unknown as Ran
  const fails = { answers: [{ ...answer, outcome: 'error' }], exit: null } as unknown as Ran
  const among = (runs: readonly Ran[]) => {
    const left = [...runs]
    return unsteadyIn([answer], () => Promise.resolve(left.shift() ?? passes))
  }
  expect(await among([passes, passes, passes])).toEqual([])
  expect(await among([passes, passes, fails])).toEqual([
    'it does not need the same each time, so that nothing was left out: tools/call: error, was result',
  ])
})
