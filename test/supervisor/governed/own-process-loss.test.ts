// What is counted as the loss of a call's own process: its own end, and not that of the process whose lists it waits for.
import { expect, test } from 'vitest'
import { newCallId, newInstanceId } from '../../../src/lib/ids.ts'
import type { Admission } from '../../../src/schema/governor.ts'
import { OwnProcesses } from '../../../src/supervisor/governed/own-processes.ts'
import { LogRing } from '../../../src/supervisor/instance/log-ring.ts'
import type { Lost } from '../../../src/supervisor/instance/life.ts'
import { unavailable } from '../../../src/supervisor/message/unavailable.ts'
import { allowAll } from '../../support/attach.ts'
import { governed } from '../../support/governance.ts'
import { noPools, plainLaunch } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'

test('a call that waits for the lists of a process that is lost counts no loss of its own', async () => {
  const server = serverSettings('last-answer.mjs', { instance: 'call' })
  const emit = (): void => undefined
  await using all = await governed({ servers: [server], rules: allowAll, emit, halt: emit })
  const losses: Lost[] = []
  await using own = new OwnProcesses({
    server,
    principal: '1000',
    toolLimit: 10,
    ports: { ...all.policy, launch: plainLaunch, pools: noPools, emit },
    logs: new LogRing(1000),
    lost: (lost) => losses.push(lost),
  })
  const gone = unavailable(server.name, 'it exited with status 3')
  const admission = { call: newCallId(), process: newInstanceId(), secrets: null } as unknown as Admission
  const process = newInstanceId()
  const { signal } = new AbortController()
  const called = own.call(
    { ...admission, process, comparing: () => Promise.reject(gone) },
    '{"name":"never","arguments":{}}',
    { signal, timeoutMs: 5000 },
  )
  await expect(called).rejects.toThrow(gone.message)
  expect(losses).toEqual([])
})
