// A server that was accepted before its entry had a way out or a credential: who looks hears of it before a call, and what mends it.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openApi } from '../support/api.ts'
import { endServe, serve } from '../support/daemon.ts'
import { callThrough, reachesOut, reachingPlace } from '../support/reaching-out.ts'

test('what an entry gives later is told by test and explain, and comes with what is accepted anew', async () => {
  await using api = await openApi()
  const { host, address, port, caFile: ca_file } = api
  const egress = [{ host, address, port, private: true, tls: true, reason: 'the API' }]
  const swap = { use: 'api', inject: 'egress', as: 'API_TOKEN', hosts: [`${host}:${port}`], ca_file }
  await using at = await reachingPlace(
    { api: reachesOut([]) },
    { allow: egress.map(({ tls: _tls, ...entry }) => entry), credentials: ['egress'] },
    { credentials: { api: { file: 'token' } } },
  )
  await writeFile(join(at.folder, 'token'), 'real-0123456789-token-abcdefghij', { mode: 0o600 })
  const running = await serve(at)
  const { client } = running
  try {
    expect((await at.run(['test', 'api'])).stdout).toMatch(/as accepted, version 1$/m)
    const config = JSON.parse(await readFile(at.config, 'utf8')) as { servers: object }
    const servers = { api: reachesOut(egress, { egress_when: 'calling', credentials: [swap] }) }
    await writeFile(at.config, JSON.stringify({ ...config, servers }))
    await client.call('daemon/reload', {})

    const left = 'network and credential api'
    const tested = await at.run(['test', 'api'])
    expect(tested).toMatchObject({ status: 0 })
    expect(tested.stdout).toContain(
      `as accepted, version 1; no tool is declared with ${left}, which its entry gives; see sallyport accept api`,
    )
    const explained = (await at.run(['explain', 'api', 'ask'])).stdout
    expect(explained).toContain(
      `contains what the tool declares; of what its entry gives that is without ${left}`,
    )
    const ask = () => callThrough(() => client)('api', 'ask', { url: `${api.url}/hello` })
    await expect(ask()).rejects.toMatchObject({
      message: expect.stringContaining(
        'during ask, declared without network; see sallyport declare api',
      ) as string,
    })

    expect((await at.run(['accept', 'api'])).status).toBe(0)
    expect((await at.run(['release', 'api'])).status).toBe(0)
    expect((await at.run(['test', 'api'])).stdout).toMatch(/as accepted, version 2$/m)
    expect((await at.run(['explain', 'api', 'ask'])).stdout).toMatch(/contains what the tool declares$/m)
    expect(await ask()).toMatchObject({ status: 200 })
    expect(api.asked.map(({ authorization }) => authorization)).toEqual([
      'Bearer real-0123456789-token-abcdefghij',
    ])
  } finally {
    await endServe(running)
  }
})
