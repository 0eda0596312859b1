// A process of a call that is taken back and is not proven to be gone: that is told, once.
import { expect, test } from 'vitest'
import { newCallId, newInstanceId } from '../../../src/lib/ids.ts'
import type { SandboxExit } from '../../../src/sandbox/driver.ts'
import type { Admission } from '../../../src/schema/governor.ts'
import { OwnProcesses } from '../../../src/supervisor/governed/own-processes.ts'
import { LogRing } from '../../../src/supervisor/instance/log-ring.ts'
import type { Happening } from '../../../src/supervisor/ports.ts'
import { allowAll } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { governed } from '../../support/governance.ts'
import { noPools, plainLaunch } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'

test('that the process of a call that was taken back is not gone is told once', async () => {
  const server = serverSettings('last-answer.mjs', { instance: 'call', stop: { eofMs: 1, termMs: 1 } })
  const events: Happening[] = []
  const emit = (event: Happening): void => void events.push(event)
  await using all = await governed({ servers: [server], rules: allowAll, emit, halt: () => undefined })
  const proof = Promise.withResolvers<SandboxExit>()
  const own = new OwnProcesses({
    server,
    principal: '1000',
    toolLimit: 10,
    ports: {
      ...all.policy,
      // Nobody can look whether it has ended.
      launch: async (...launch) => ({ ...(await plainLaunch(...launch)), ended: proof.promise }),
      pools: noPools,
      emit,
    },
    logs: new LogRing(1000),
    lost: () => undefined,
  })
  const process = newInstanceId()
  const admission = {
    call: newCallId(),
    process,
    secrets: null,
    comparing: () => new Promise(() => undefined), // it is not sent
    refuse: async (error: Error) => error,
  } as unknown as Admission & { readonly process: typeof process }
  const caller = new AbortController()
  const asked = { signal: caller.signal, timeoutMs: 5000 }
  const called = own.call(admission, '{"name":"never","arguments":{}}', asked)
  const ended = expect(called).rejects.toThrow('enough')
  await eventually(() => own.views().some(({ state }) => state === 'ready'))
  caller.abort(new Error('enough'))
  await ended
  await eventually(() => own.views().length === 0)
  proof.resolve({ code: null, signal: 9, reason: 'killed' })
  expect(events.filter(({ type }) => type === 'call/not-gone')).toMatchObject([{ instance: process }])
})
