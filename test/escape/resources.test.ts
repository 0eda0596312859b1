// A server that takes all it can get gets what its profile says, and the host goes on.
import { chmodSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { attempts, bare, confined, daemons, openOf } from '../support/escape.ts'
import { type Difference, launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Taken {
  readonly amount: number
  readonly stopped: string | null
}

/** Small enough that a test reaches each, large enough for Node. */
const tight = {
  profile: 'workspace-write',
  limits: {
    memoryBytes: 268_435_456,
    pids: 32,
    openFiles: 128,
    fileBytes: 12_582_912,
    tmpBytes: 8_388_608,
  },
}

let folder: Awaited<ReturnType<typeof tempDir>>

beforeEach(async () => {
  folder = await tempDir()
  chmodSync(folder.path, 0o777)
})
afterEach(() => folder[Symbol.asyncDispose]())

describe.each(daemons)('under a daemon of %s', (daemon) => {
  const take = async (what: string, more: Difference = {}): Promise<Taken> =>
    JSON.parse(await confined(daemon, 'probe-exhaust.mjs', [what], { ...tight, ...more })) as Taken

  test('a fork bomb stops at the profile’s processes', async () => {
    const { amount, stopped } = await take('processes')
    expect(stopped).toBe('EAGAIN')
    // Node's own threads count as processes too.
    expect(amount).toBeGreaterThan(0)
    expect(amount).toBeLessThan(32)
  })

  test('a thread bomb stops at the profile’s processes', async () => {
    // Each of Node's threads has a heap of its own.
    const limits = { ...tight.limits, memoryBytes: 536_870_912 }
    const { amount, stopped } = await take('threads', { limits })
    expect(stopped).toBe('ERR_WORKER_INIT_FAILED')
    expect(amount).toBeGreaterThan(0)
    expect(amount).toBeLessThan(32)
  })

  test('descriptors stop at the profile’s open files', async () => {
    const { amount, stopped } = await take('descriptors')
    expect(stopped).toBe('EMFILE')
    expect(amount).toBeLessThan(128)
  })

  test.each(['tmp', 'home', 'shm'])(
    'what is written to the private %s stops at the profile’s size',
    async (what) => {
      const { amount, stopped } = await take(what)
      expect(['ENOSPC', 'EFBIG']).toContain(stopped)
      expect(amount).toBeGreaterThanOrEqual(7)
      expect(amount).toBeLessThanOrEqual(8)
    },
  )

  test('a file in a granted folder stops at the profile’s file size', async () => {
    const grant = { source: folder.path, target: '/workspace', access: 'write', reason: 'a test' }
    const { amount, stopped } = await take('file', { mounts: [grant] })
    expect(stopped).toBe('EFBIG')
    expect(amount).toBeLessThanOrEqual(12)
  })

  test('a server raises no limit of its own and does not make itself the last to be killed', async () => {
    expect(openOf(await attempts(daemon, 'resources.'))).toEqual([])
  })
})

test('memory that is used up ends the whole tree, and the exit says so', async () => {
  await using host = await launchHost()
  await using server = await launchProbe(await settingsFor('probe-exhaust.mjs', ['memory'], tight), host)
  expect(server.enforcedBy.memory).not.toBe('none')
  expect((await server.ended).reason).toBe('oom')
})

test('bare, none of it stops there', async () => {
  const { amount } = JSON.parse(await bare('probe-exhaust.mjs', ['descriptors'])) as Taken
  expect(amount).toBeGreaterThan(128)
})
