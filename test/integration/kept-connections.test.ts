// Clients keep their connections, and take them for open until they have read that they are over: also when the next call is there at once.
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { type Api, openApi } from '../support/api.ts'
import { endServe, type Place, serve, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { stretched } from '../support/pace.ts'
import { callThrough, reachesOut, reachingPlace, recordsAbout } from '../support/reaching-out.ts'

const calls = 40

let api: Api
let at: Place
let client: Client
let child: TestDaemon['process']

beforeAll(async () => {
  api = await openApi()
  const { host, port, address, caFile } = api
  const allow = [{ host, port, address, private: true, reason: 'the API' }]
  const egress = allow.map((entry) => ({ ...entry, tls: true }))
  const credentials = [
    { use: 'api', inject: 'egress', as: 'API_TOKEN', hosts: [`${host}:${port}`], ca_file: caFile },
  ]
  at = await reachingPlace(
    {
      swap: reachesOut(egress, { credentials }),
      calling: reachesOut(egress, { credentials, egress_when: 'calling' }),
      tunnel: reachesOut(egress, { egress_when: 'calling' }),
    },
    { allow, credentials: ['egress'] },
    { credentials: { api: { env: 'TEST_TOKEN' } } },
  )
  ;({ process: child, client } = await serve(at, { TEST_TOKEN: 'real-0123456789-token-abcdefghij' }))
})
afterAll(async () => {
  await endServe({ process: child, client })
  await at[Symbol.asyncDispose]()
  await api[Symbol.asyncDispose]()
})

const call = callThrough(() => client)

test.each([
  ['swap', 'lease-ended'],
  ['calling', 'lease-ended'],
  ['tunnel', 'doors-shut'],
])('a call of %s that follows another at once uses nothing that has ended', async (server, reason) => {
  const answers: unknown[] = []
  const asked = { url: `${api.url}/kept`, isTrusted: server !== 'tunnel' }
  for (let it = 0; it < calls; it++) answers.push(await call(server, 'kept', asked))
  const failed = answers.filter((answer) => !isDeepStrictEqual(answer, { status: 200 }))
  // What a client that is slow to read is waited for is 0.1 s
  const isSlow = failed.length > 0 && (await stretched(100)) > 200
  expect(isSlow ? failed.slice(calls / 10) : failed).toEqual([])
  const ended = await eventually(() => {
    const closed = recordsAbout(at, 'egress.closed', server)
    return closed.length > 0 && closed
  })
  expect(ended[0]?.body['reason']).toBe(reason)
})
