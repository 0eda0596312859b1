// Limits in the real sandbox, by whatever holds them here: control groups for root, watchdog and rlimits for a user.
import { beforeAll, describe, expect, test } from 'vitest'
import { createCgroups } from '../../../src/sandbox/cgroup/cgroup.ts'
import { type BubblewrapPlan, confine } from '../../../src/sandbox/bubblewrap/driver.ts'
import type { SandboxExit, SandboxProcess } from '../../../src/sandbox/driver.ts'
import { chooseEnforcement } from '../../../src/sandbox/limits/enforcement.ts'
import { readKernelFacts } from '../../../src/sandbox/fingerprint/kernel-facts.ts'
import { holdFromOutside } from '../../../src/sandbox/limits/outer-limits.ts'
import type { Limits } from '../../../src/sandbox/spec.ts'
import { newDaemonId } from '../../../src/lib/ids.ts'
import { hostSupport, leftOf } from '../../support/cgroup-host.ts'
import { eventually } from '../../support/eventually.ts'
import { mountOf, planOf, start } from '../../support/plan.ts'
import { buildProbe } from '../../support/probe.ts'
import { childrenOf, parentOf } from '../../support/processes.ts'
import { patienceMs } from '../../support/patience.ts'

let hog = ''
beforeAll(() => {
  hog = buildProbe('hog')
})

const limits: Limits = {
  memoryBytes: 64 * 2 ** 20,
  pids: 20,
  cpu: 1,
  openFiles: 64,
  fileBytes: 2 ** 30,
  tmpBytes: 2 ** 20,
  enforcement: { memory: 'best-effort', pids: 'required', cpu: 'best-effort', files: 'required' },
}

function hogPlan(...args: string[]): Promise<BubblewrapPlan> {
  return planOf(['/opt/hog', ...args], { spec: { mounts: [mountOf(hog, '/opt/hog')], limits } })
}

interface Held {
  /** What was heard first */
  readonly line: string
  /** What was known of its end as its output ended */
  readonly ending: SandboxExit['reason'] | null
  /** How it ended */
  readonly reason: SandboxExit['reason']
}

/** Holds a plan from outside as a launch does, and runs it to its end, or until it has forked. */
async function held(plan: BubblewrapPlan, cgroups = hostSupport): Promise<Held> {
  const groups = createCgroups(cgroups, newDaemonId())
  const enforcedBy = chooseEnforcement(plan.spec.limits, { ...readKernelFacts(), cgroups })
  const outerLimits = holdFromOutside(groups, plan.spec, enforcedBy)
  const server = await startAlone({ ...plan, outerLimits, enforcedBy })
  let line = ''
  for await (const chunk of server.stdout) {
    line ||= String(chunk).split('\n')[0] ?? ''
    if (line.startsWith('forked')) server.kill()
  }
  const ending = server.ending()
  const { reason } = await server.ended
  await server[Symbol.asyncDispose]()
  expect(leftOf(outerLimits.joinFiles)).toEqual([])
  await groups[Symbol.asyncDispose]()
  expect(leftOf(groups.directories)).toEqual([])
  return { line, ending, reason }
}

/** Opens the gate once whoever covered /proc is reaped, who until then counts as one of the sandbox's processes. */
async function startAlone(plan: BubblewrapPlan): Promise<SandboxProcess> {
  const signal = AbortSignal.timeout(patienceMs)
  const gate = await confine(plan, { signal })
  const monitor = parentOf(gate.initPid)
  await eventually(() => childrenOf(monitor).length === 1)
  return await gate.open({ signal })
}

const none = {
  ...hostSupport,
  level: 'none',
  bases: { memory: null, pids: null, cpu: null, kill: null },
} as const

describe.each([
  ['what this machine has', hostSupport],
  ['no control groups', none],
])('with %s', (_, cgroups) => {
  test.each(['memory', 'memfd', 'family'])(
    'a %s hog ends with its whole tree, and the reason says memory, to whoever sees its output end, too',
    async (kind) => {
      const of = { ending: 'oom', reason: 'oom' }
      expect(await held(await hogPlan(kind, '200'), cgroups)).toMatchObject(of)
    },
  )

  test('a fork bomb stops at the limit', async () => {
    const of = { line: 'forked 19', ending: 'killed', reason: 'killed' }
    expect(await held(await hogPlan('fork'), cgroups)).toEqual(of)
  })
})

test('without limits the same hogs get what they want', async () => {
  for (const [kind, line] of [
    ['memory', 'has 200'],
    ['fork', 'forked 200'],
  ] as const) {
    await using server = await start({ ...(await hogPlan(kind, '200')), innerLimits: [] })
    const { value } = await server.stdout[Symbol.asyncIterator]().next()
    expect(String(value).split('\n')[0]).toBe(line)
  }
})
