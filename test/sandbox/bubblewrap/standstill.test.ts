// A daemon whose one thread stands still while a sandbox ends: what init said before its end is heard all the same.
import { spawn } from 'node:child_process'
import { expect, test } from 'vitest'
import { confine } from '../../../src/sandbox/bubblewrap/driver.ts'
import { planOf } from '../../support/plan.ts'

const standStill = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

test('a server that ran to its end while the thread stood still, ended as it did', async () => {
  const signal = AbortSignal.timeout(60_000)
  await using gate = await confine(await planOf(['/bin/sh', '-c', 'exit 7']), { signal })
  // What it wrote and its end come in the one look at the kernel that is before the sandbox's end. So that is learnt by the same
  // `wait` as this child's end, before the look that finds what init said.
  const other = spawn('/bin/echo', ['now'], { stdio: ['ignore', 'pipe', 'ignore'] })
  other.stdout.once('data', () => standStill(800))
  other.once('exit', () => standStill(400))
  standStill(200)
  const server = await gate.open({ signal })
  expect(await server.ended).toEqual({ code: 7, signal: null, reason: 'exited' })
})
