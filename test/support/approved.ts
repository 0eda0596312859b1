// A call of a server called `plain` that an operator said yes to for good.
import type { Client } from '../../src/client/client.ts'
import { watching, yes } from './watching.ts'

/** The call that is asked for. */
export const callPlain = (client: Client) =>
  client.call('tools/call', { server: 'plain', tool: 'echo', arguments: { text: 'a' } })

/** Calls once, and says yes to that and to all that is like it. */
export async function approved(client: Client): Promise<void> {
  await using _watch = await watching(client, yes(client, 'policy'))
  await callPlain(client)
}
