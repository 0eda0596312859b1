// sallyport profile, as a person or a script runs it: results on stdout, refusals on stderr, and the exit status.
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { tempDir } from '../support/temp-dir.ts'
import { patienceMs } from '../support/patience.ts'

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

async function sallyport(...args: readonly string[]) {
  const env = { HOME: '/nonexistent', PATH: process.env['PATH'] }
  const child = spawn(process.execPath, [cli, 'profile', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: patienceMs,
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [out, err, status] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { out, err, status }
}

test('list names every shipped profile, and as JSON says where it is', async () => {
  const [plain, json] = await Promise.all([sallyport('list'), sallyport('list', '--json')])
  expect(plain.status).toBe(0)
  const listed = JSON.parse(json.out) as { name: string; shipped: boolean }[]
  expect(listed.length).toBe(7)
  for (const { name, shipped } of listed) {
    expect(shipped).toBe(true)
    expect(plain.out).toContain(`${name} `)
  }
})

test('show prints a profile that can be read as one, with the deciding lines', async () => {
  const { out, status } = await sallyport('show', 'node')
  expect(status).toBe(0)
  expect(out).toContain('memory_bytes: 1073741824 # node.yaml:')
})

test('explain says what one thing gets, for people and for programs', async () => {
  const [plain, json] = await Promise.all([
    sallyport('explain', 'offline', 'syscall', 'ptrace'),
    sallyport('explain', 'offline', 'path', '/root', '--json'),
  ])
  expect(plain.out).toMatch(/^refused \(EPERM\): .*\(offline\.yaml:\d+\)\n$/)
  expect(JSON.parse(json.out)).toMatchObject({
    profile: 'offline',
    subject: 'path',
    name: '/root',
    gets: 'absent',
  })
})

test('diff says what a server could newly do, for people and for programs', async () => {
  const [plain, json, same] = await Promise.all([
    sallyport('diff', 'offline', 'node'),
    sallyport('diff', 'offline', 'node', '--json'),
    sallyport('diff', 'node', 'workspace-read'),
  ])
  expect(plain.status).toBe(0)
  expect(plain.out).toMatch(
    /^under node, and not under offline, a server could\n {2}\+ have host folders to read, where its entry mounts them \(workspace-read\.yaml:\d+\)\n/,
  )
  expect(JSON.parse(json.out)).toMatchObject({
    from: 'offline',
    to: 'node',
    newly: [
      { key: 'filesystem.mounts' },
      { key: 'limits.memory_bytes' },
      { key: 'limits.pids' },
      { key: 'limits.open_files' },
    ],
    no_longer: [],
  })
  expect(same.out).toMatch(
    /^under workspace-read a server could do nothing that it could not under node\nand no longer\n {2}- use 1073741824 bytes of memory, instead of 536870912/,
  )
})

describe('the exit status', () => {
  test('of lint is 0 for a valid profile, dangerous or not, and 7 for an invalid one', async () => {
    await using dir = await tempDir()
    await writeFile(`${dir.path}/mine.yaml`, 'version: 1\nname: mine\nexce: none\n', { mode: 0o600 })
    const [valid, invalid] = await Promise.all([
      sallyport('lint', 'workspace-write'),
      sallyport('lint', 'node', `${dir.path}/mine.yaml`),
    ])
    expect([valid.status, invalid.status]).toEqual([0, 7])
    expect(valid.out).toContain('warning: ')
    expect(invalid.out).toContain('did you mean exec?')
  })

  test.each([
    [8, 'ERR_PROFILE_UNKNOWN', ['show', 'nodee']],
    [8, 'ERR_PROFILE_UNKNOWN', ['lint', 'nodee']],
    [8, 'ERR_PROFILE_UNKNOWN', ['diff', 'node', 'nodee']],
    [7, 'ERR_USAGE', ['explain', 'node', 'colour', 'red']],
    [7, 'ERR_USAGE', ['explain', 'node', 'limit', 'memry']],
    [7, 'ERR_USAGE', ['show']],
    [7, 'ERR_PROFILE_INVALID', ['explain', 'node', 'syscall', 'ptrase']],
  ] as const)('is %i, with %s, of %j', async (status, code, args) => {
    const said = await sallyport(...args)
    expect(said.status).toBe(status)
    expect(said.out).toBe('')
    expect(said.err).toContain(code)
    expect(said.err.trimEnd()).not.toContain('\n')
  })
})
