// A call of a server called `plain` that an operator said yes to for good.
import type { Client } from '../../src/client/client.ts'
import { eventually } from './eventually.ts'

/** The call that is asked for. */
export const callPlain = (client: Client) =>
  client.call('tools/call', { server: 'plain', tool: 'echo', arguments: { text: 'a' } })

/** Calls once, and says yes to that and to all that is like it. */
export async function approved(client: Client): Promise<void> {
  const over = new AbortController()
  const watched = (async () => {
    for await (const { method, params } of client.approvals(over))
      if (method === 'approvals/asked')
        await client.call('approvals/approve', { id: params.id, scope: 'policy' })
  })()
  await eventually(async () => (await client.call('approvals/list', {})).listeners > 0)
  await callPlain(client)
  over.abort()
  await watched
}
