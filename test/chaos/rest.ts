// A daemon at rest: what it holds while nobody calls, and what it may not hold then.
import type { Client } from '../../src/client/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Holding, holdingOf } from './census.ts'
import type { Stage } from './stage.ts'

/** Stops every server, and waits until the daemon has nothing but its helpers. */
export async function atRest(stage: Stage): Promise<Holding & { readonly livingMib: number }> {
  await using client = await stage.operator()
  for (const { name } of (await client.call('servers/list', {})).servers)
    await client.call('servers/stop', { server: name }).catch(() => undefined)
  const { pid } = client.hello
  try {
    await eventually(() => holdingOf(pid).others.length === 0, 15_000)
  } catch {
    stage.account.breaks('processes', `with every server stopped: ${holdingOf(pid).others.join('; ')}`)
  }
  await expectNoLeases(stage, client)
  return { ...holdingOf(pid), livingMib: await stage.livingMib() }
}

/** Breaks `leases` where a permit or a question is there; to be called while no call is in flight. */
export async function expectNoLeases({ account }: Stage, client: Client): Promise<void> {
  const { permits } = await client.call('permits/list', {})
  const { pending } = await client.call('approvals/list', {})
  if (permits.length + pending.length > 0)
    account.breaks('leases', `${permits.length} permits, ${pending.length} questions with nobody waiting`)
}
