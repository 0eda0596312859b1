// Sandboxes that wait for calls with a way out: what becomes of the call whose sandbox has lost its relay.
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openApi } from '../support/api.ts'
import { configOf, endServe, place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/leaks.ts'
import { poolOf, run, runs, waitingInits, waits } from '../support/pool.ts'
import { callThrough, reachesOut, reachingPlace } from '../support/reaching-out.ts'

const allow = [{ host: 'api.example.com', port: 443, reason: 'a test' }]

const placeWithWayOut = async () => {
  const profile = { version: 1, name: 'out', extends: 'node', widens: true }
  const entry = runs({ profile: 'out', egress: allow, pool: { size: 1 } })
  const at = await place(configOf({ runs: entry }))
  await mkdir(join(at.folder, 'profiles'))
  const file = join(at.folder, 'profiles', 'out.yaml')
  await writeFile(file, JSON.stringify({ ...profile, network: { mode: 'allowlist', allow } }), {
    mode: 0o600,
  })
  return at
}

/** Of the one sandbox that waits. */
const relayOf = (at: Parameters<typeof waitingInits>[0]): { init: number; relay: number } => {
  const [init, ...others] = waitingInits(at)
  const [relay] = childrenOf(init ?? -1)
  if (init === undefined || others.length > 0 || relay?.name !== 'egress') throw new Error('no relay waits')
  return { init, relay: relay.pid }
}

const stateOf = (pid: number): string | undefined =>
  existsSync(`/proc/${pid}/status`)
    ? /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    : undefined

test.each([
  ['SIGKILL', 'Z'],
  ['SIGSTOP', 'T'],
] as const)(
  '%s at the relay costs the call nothing: nothing of the server ran, it has another',
  async (signal, state) => {
    await using at = await placeWithWayOut()
    const served = await serve(at)
    const daemon = { ...at, ...served }
    await served.client.call('servers/start', { server: 'runs' })
    await waits(daemon, 1)
    const { init, relay } = relayOf(daemon)
    process.kill(relay, signal)
    await eventually(() => stateOf(relay) === state || !existsSync(`/proc/${init}`))
    expect(await run(daemon, 'echo ran; cat /etc/hosts')).toMatch(/^ran\n[^]*api\.example\.com/)
    expect(await poolOf(daemon)).toMatchObject({ drawn: 0, missed: 1, lost: 1 })
    await eventually(() => !existsSync(`/proc/${init}`))
    await endServe(served)
  },
)

test('the other one has the same way out, with the credential of the call', async () => {
  await using api = await openApi()
  const { host, port, address, url, caFile } = api
  const target = { host, port, address, private: true, reason: 'the API' }
  const credentials = [
    { use: 'api', inject: 'egress', as: 'API_TOKEN', hosts: [`${host}:${port}`], ca_file: caFile },
  ]
  const entry = reachesOut([{ ...target, tls: true }], { instance: 'call', credentials, pool: { size: 1 } })
  await using at = await reachingPlace(
    { out: entry },
    { allow: [target], credentials: ['egress'] },
    { credentials: { api: { env: 'TEST_TOKEN' } } },
  )
  const served = await serve(at, { TEST_TOKEN: 'real-0123456789-token-abcdefghij' })
  const daemon = { ...at, ...served }
  await served.client.call('servers/start', { server: 'out' })
  await waits(daemon, 1, 'out')
  const { relay } = relayOf(daemon)
  process.kill(relay, 'SIGKILL')
  await eventually(() => stateOf(relay) === 'Z')
  const { status } = await callThrough(() => served.client)('out', 'ask', { url: `${url}/again` })
  expect(status).toBe(200)
  expect(api.asked.map(({ authorization }) => authorization)).toEqual([
    'Bearer real-0123456789-token-abcdefghij',
  ])
  await endServe(served)
})
