// A sandbox whose first process somebody stops before it has said a word: it obeys no order, and nobody was told its pid.
import { readFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { confine } from '../../../src/sandbox/bubblewrap/driver.ts'
import { startLauncher } from '../../../src/sandbox/bubblewrap/launchers.ts'
import { childrenOf, isGone, isStopped, type ProcessIdentity } from '../../../src/sandbox/proof.ts'
import { soon } from '../../../src/lib/deadline.ts'
import { eventually } from '../../support/eventually.ts'
import { planOf } from '../../support/plan.ts'

/** Whether it has another pid in there; one that has ended has none. */
function isInNamespace(pid: number): boolean {
  try {
    return /^NSpid:\t\d+\t\d+/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

interface Stopped {
  readonly first: ProcessIdentity
  readonly launched: Promise<string>
  readonly calledOff: AbortController
}

/** A launch whose PID 1 was stopped before its gate, or null where that came too late. */
async function stoppedLaunch(): Promise<Stopped | null> {
  let monitor = 0
  const start = async (path: string) => {
    const child = await startLauncher(path)
    monitor = child.pid ?? 0
    return child
  }
  const calledOff = new AbortController()
  const launched = confine(await planOf(['/bin/cat']), { signal: calledOff.signal, start })
  let first: ProcessIdentity | undefined
  while (first === undefined) {
    await turn()
    if (monitor > 0) first = childrenOf(monitor).find(({ pid }) => isInNamespace(pid))
  }
  const { pid } = first
  process.kill(pid, 'SIGSTOP')
  await eventually(() => isStopped(pid))
  const gate = await soon(launched, 500)
  await gate?.[Symbol.asyncDispose]()
  return gate === null ? { first, calledOff, launched: launched.then(() => 'it stands', String) } : null
}

test('a launch whose PID 1 was stopped before its gate ends when it is called off, and nothing of it is left', async () => {
  let stopped: Stopped | null = null
  while (stopped === null) stopped = await stoppedLaunch()
  const { first, launched, calledOff } = stopped
  const begun = performance.now()
  calledOff.abort(new Error('called off'))
  expect(await launched).toBe('Error: called off')
  expect(performance.now() - begun).toBeLessThan(5000) // of the ten seconds after which it is given up
  expect(isGone(first)).toBe(true)
})
