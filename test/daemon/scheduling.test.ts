// When the daemon gets a processor: as soon as one is free, and none that others work on; its servers as any program.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { descendantsOf } from '../support/leaks.ts'
import { policyOf } from '../support/scheduling.ts'

it('the daemon wakes in its turn, and its servers are scheduled as if nothing were around them', async () => {
  await using running = await daemon(configOf({ echo: fixture('echo') }))
  const pid = running.process.pid ?? 0
  await running.client.call('servers/start', { server: 'echo' })
  const server = await eventually(() => descendantsOf(pid).find((one) => isServer(one.pid)))
  const seen = { daemon: policyOf(pid), server: policyOf(server.pid) }
  expect(seen).toEqual({ daemon: 'batch', server: 'other' })
})

const isServer = (pid: number): boolean =>
  readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('node\0/app/')
