// An operator: answers some questions, looks at everything, halts and lets go, and reloads what was changed meanwhile.
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../src/client/client.ts'
import type { Chance } from './chance.ts'
import type { World } from './hosts.ts'

/** Acts until the storm is over; whatever it halted it lets go again. */
export async function operator({ stage, ledger, signal, servers }: World, chance: Chance): Promise<void> {
  while (!signal.aborted) {
    const client = await stage.at.connect('operator').catch(() => null) // who may find none: it is killed now and then
    if (client === null) {
      await delay(chance.between(50, 200))
      continue
    }
    await using _ = client
    const away = new AbortController()
    const answering = answer(client, chance.of('answers'), away.signal).catch(() => undefined)
    const server = () => chance.pick(servers)
    const acts: Record<string, () => Promise<unknown>> = {
      hold: async () => {
        await client.call('servers/hold', { server: server(), name: 'pause', reason: 'chaos' })
        await delay(chance.between(10, 300))
        await client.call('servers/release', { name: 'pause' })
      },
      quarantine: async () => {
        const name = server()
        await client.call('servers/quarantine', { server: name, reason: 'chaos' })
        await delay(chance.between(10, 300))
        await client.call('servers/release', { name })
      },
      release: () => releaseAll(client),
      revoke: () => client.call('permits/revoke', { server: server() }),
      reset: () => client.call('trust/reset', { server: server() }),
      test: () => client.call('servers/test', { server: server() }),
      verify: () => client.call('audit/verify', {}),
      query: () => client.call('audit/query', { limit: 100 }),
      logs: () => client.call('servers/logs', { server: server(), lines: 10 }),
      reload: () =>
        stage.config.inTurn(() => {
          stage.config.write({ more: { permit: { ttl_ms: chance.between(20_000, 40_000) } } })
          return client.call('daemon/reload', {})
        }),
    }
    for (let left = chance.between(5, 30); left > 0 && !signal.aborted; left--) {
      const name = chance.pick(Object.keys(acts))
      stage.account.count('operator', name)
      const end = await ledger.settled(`the operator's ${name}`, acts[name]?.() ?? Promise.resolve())
      stage.account.count('operator is told', end)
      if (end === 'ERR_DAEMON_UNAVAILABLE') break
      await delay(chance.between(10, 400))
    }
    away.abort()
    await answering
  }
}

/** Lets everything that is halted or held run again. */
export async function releaseAll(client: Client): Promise<void> {
  for (const { name } of (await client.call('servers/holds', {})).holds)
    await client.call('servers/release', { name })
  for (const { name, state } of (await client.call('servers/list', {})).servers)
    if (state === 'failed') await client.call('servers/release', { name }).catch(() => undefined)
}

async function answer(client: Client, chance: Chance, signal: AbortSignal): Promise<void> {
  for await (const { method, params } of client.approvals({ signal })) {
    if (method !== 'approvals/asked') continue
    const say = chance.weighed([
      [5, 'yes'],
      [2, 'no'],
      [1, 'nothing'],
    ] as const)
    if (say === 'yes')
      client
        .call('approvals/approve', {
          id: params.id,
          scope: chance.pick(['once', 'session', 'policy'] as const),
        })
        .catch(() => undefined)
    if (say === 'no') client.call('approvals/deny', { id: params.id }).catch(() => undefined)
  }
}
