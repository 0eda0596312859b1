// Long lines of a server that has a secret: looked through piece by piece, and judged as short ones are.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { endServe, type Place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { reachesOut, reachingPlace, recordsOf } from '../support/reaching-out.ts'

const secret = 'other-9876543210-token-zyxwvutsrq'
const megabytes = 6

let at: Place
let client: Client
let child: TestDaemon['process']

beforeAll(async () => {
  const entry = reachesOut([], {
    args: ['/app/long-lines.mjs'],
    credentials: [{ use: 'key', inject: 'meta', as: 'KEY' }],
    output: { result_bytes: 10_485_760 },
  })
  at = await reachingPlace(
    { call: { ...entry, instance: 'call' }, control: entry, session: entry },
    { allow: [], credentials: ['meta'] },
    { credentials: { key: { file: 'key' } } },
  )
  await writeFile(join(at.folder, 'key'), `${secret}\n`, { mode: 0o600 })
  ;({ process: child, client } = await serve(at))
})
afterAll(async () => {
  await endServe({ process: child, client })
  await at[Symbol.asyncDispose]()
})

interface Say {
  readonly letter?: string
  readonly asLog?: boolean
  readonly withSecret?: boolean
  readonly isLast?: boolean
}
const say = (how: Say): Record<string, unknown> => ({
  megabytes,
  letter: '%6',
  asLog: false,
  withSecret: false,
  isLast: false,
  ...how,
})

/** What a host of `sallyport stdio` is told until the answer to its one call. */
async function heard(how: Say): Promise<readonly string[]> {
  const session = at.start(['stdio', 'session'])
  const chunks: Buffer[] = []
  session.stdout?.on('data', (chunk: Buffer) => void chunks.push(chunk))
  const write = (message: object): unknown =>
    session.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const introduction = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  }
  write({ id: 1, method: 'initialize', params: introduction })
  write({ method: 'notifications/initialized' })
  write({ id: 2, method: 'tools/call', params: { name: 'say', arguments: say(how) } })
  const lines = (): readonly string[] => Buffer.concat(chunks).toString().split('\n').slice(0, -1)
  const all = await eventually(() => lines().some((line) => /"id":2[,}]/.test(line)) && lines())
  session.stdin?.end()
  await eventually(() => session.exitCode !== null)
  return all.slice(1)
}

describe.each(['control', 'call'])('in a control call (server %s)', (server) => {
  const call = (how: Say) => client.call('tools/call', { server, tool: 'say', arguments: say(how) })

  test('an answer with the secret in it does not arrive', async () => {
    await expect(call({ withSecret: true })).rejects.toMatchObject({ code: 'ERR_SECRET_IN_RESULT' })
  })

  // The last: a server that ended is not started again at once.
  test.each([false, true])(
    'an answer arrives whole (the server ends right behind it: %s)',
    async (isLast) => {
      const { data } = await call({ isLast })
      expect((data as { content: [{ text: string }] }).content[0].text).toHaveLength(megabytes * 1_048_576)
    },
  )
})

test('answers of servers that end right behind them arrive although many are looked through at once', async () => {
  const all = Array.from({ length: 6 }, () =>
    client.call('tools/call', { server: 'call', tool: 'say', arguments: say({ isLast: true }) }),
  )
  for (const { data } of await Promise.all(all))
    expect((data as { content: [{ text: string }] }).content[0].text).toHaveLength(megabytes * 1_048_576)
})

test('a server that ends right behind an answer with the secret in it ends with what it said', async () => {
  const how = say({ withSecret: true, isLast: true })
  await expect(
    client.call('tools/call', { server: 'call', tool: 'say', arguments: how }),
  ).rejects.toMatchObject({
    code: 'ERR_SECRET_IN_RESULT',
  })
})

describe('in a session', () => {
  test.each([false, true])(
    'an answer arrives whole (the server ends right behind it: %s)',
    async (isLast) => {
      const [line = ''] = await heard({ isLast })
      expect(line.length).toBeGreaterThan(megabytes * 1_048_576)
    },
  )

  test('an answer with the secret in it is an error', async () => {
    expect(await heard({ withSecret: true })).toEqual([expect.stringContaining('ERR_SECRET_IN_RESULT')])
  })

  test('a log passes, and the secret in it does not', async () => {
    const [log = '', end = ''] = await heard({ asLog: true, withSecret: true })
    expect(log).toContain('%6[redacted:key]%6')
    expect(log.length).toBeGreaterThan(megabytes * 1_048_576)
    expect(end).toContain('said')
    expect(log).not.toContain(secret)
  })
})

test('the journal has every outcome, and the secret in none of its records', async () => {
  const outcomes = (): number => recordsOf(at).filter(({ type }) => type === 'call.outcome').length
  await eventually(() => outcomes() === 17)
  expect(JSON.stringify(recordsOf(at))).not.toContain(secret)
})
