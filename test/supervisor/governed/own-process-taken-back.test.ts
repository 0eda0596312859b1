// A call that its caller takes back while its own process comes up has that end, and no other.
import { expect, test } from 'vitest'
import { newCallId, newInstanceId } from '../../../src/lib/ids.ts'
import type { Admission } from '../../../src/schema/governor.ts'
import { OwnProcesses } from '../../../src/supervisor/governed/own-processes.ts'
import { LogRing } from '../../../src/supervisor/instance/log-ring.ts'
import { unavailable } from '../../../src/supervisor/message/unavailable.ts'
import { allowAll } from '../../support/attach.ts'
import { governed } from '../../support/governance.ts'
import { noPools, plainLaunch } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'

test.each([
  { isTakenBack: false, refused: 1 },
  { isTakenBack: true, refused: 0 },
])('a session that ends under a launch: taken back $isTakenBack', async ({ isTakenBack, refused }) => {
  const server = serverSettings('last-answer.mjs', { instance: 'call' })
  const emit = (): void => undefined
  await using all = await governed({ servers: [server], rules: allowAll, emit, halt: emit })
  const { promise: launching, resolve: goOn } = Promise.withResolvers<void>()
  await using own = new OwnProcesses({
    server,
    principal: '1000',
    toolLimit: 10,
    ports: {
      ...all.policy,
      launch: async (...launch) => {
        await launching
        return plainLaunch(...launch)
      },
      pools: noPools,
      emit,
    },
    logs: new LogRing(1000),
    lost: emit,
  })
  const refusals: Error[] = []
  const admission = {
    call: newCallId(),
    process: newInstanceId(),
    secrets: null,
    comparing: () => null,
    refuse: async (error: Error) => {
      refusals.push(error)
      return error
    },
  } as unknown as Admission
  const caller = new AbortController()
  const params = '{"name":"never","arguments":{}}'
  const process = newInstanceId()
  const called = own.call({ ...admission, process }, params, { signal: caller.signal, timeoutMs: 5000 })
  const ended = expect(called).rejects.toThrow()
  if (isTakenBack) caller.abort(new Error('the call is over'))
  own.refuseUnsent(unavailable(server.name, 'the session is over'))
  caller.abort(new Error('the call is over'))
  goOn()
  await ended
  expect(refusals).toHaveLength(refused)
})
