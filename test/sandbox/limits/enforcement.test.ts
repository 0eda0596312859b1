// What holds each limit, for every kind of host; what can't be held and is required refuses the launch by name.
import { describe, expect, test } from 'vitest'
import type { CgroupBase, CgroupSupport } from '../../../src/sandbox/cgroup/level.ts'
import { chooseEnforcement, type LimitSupport } from '../../../src/sandbox/limits/enforcement.ts'
import type { Enforcement, Limits } from '../../../src/sandbox/spec.ts'

const limits = (how: Enforcement): Limits => ({
  memoryBytes: 1024,
  pids: 8,
  cpu: 1,
  openFiles: 64,
  fileBytes: 1024,
  tmpBytes: 1024,
  enforcement: { memory: how, pids: how, cpu: how, files: how },
})
const host = (base: CgroupBase | null, more: Partial<LimitSupport> = {}): LimitSupport => {
  const cgroups: CgroupSupport = {
    level: base === null ? 'none' : base.version === 1 ? 'v1' : 'v2',
    bases: { memory: base, pids: base, cpu: base, kill: null },
    cause: base === null ? 'no group can be written' : null,
    mend: base === null ? 'make one' : null,
  }
  return { cgroups, nprocPerNamespace: true, processTree: true, ...more }
}
const inside = { files: 'rlimit', tmp: 'tmpfs' } as const

describe.each(['required', 'best-effort'] as const)('limits that are %s', (how) => {
  test.each([1, 2] as const)('are held by control groups of version %d', (version) => {
    const by = `cgroup-v${version}` as const
    const enforced = chooseEnforcement(limits(how), host({ version, path: '/x' }))
    expect(enforced).toEqual({ memory: by, pids: by, cpu: by, ...inside })
  })
})

test('without control groups, best effort means watchdog, rlimit and nothing', () => {
  const enforced = chooseEnforcement(limits('best-effort'), host(null))
  expect(enforced).toEqual({ memory: 'watchdog', pids: 'rlimit', cpu: 'none', ...inside })
})

test('a watchdog that would be blind and an rlimit that counts the whole machine hold nothing', () => {
  const blind = host(null, { processTree: false, nprocPerNamespace: false })
  expect(chooseEnforcement(limits('best-effort'), blind)).toMatchObject({ memory: 'none', pids: 'none' })
})

test.each(['memory', 'cpu'] as const)(
  '%s that is required and can’t be held refuses the launch by name',
  (control) => {
    const asked = limits('best-effort')
    const required = { ...asked, enforcement: { ...asked.enforcement, [control]: 'required' } }
    expect(() => chooseEnforcement(required, host(null))).toThrow(
      expect.objectContaining({
        code: 'ERR_SANDBOX_UNENFORCEABLE',
        message: expect.stringMatching(`limits.${control} .*required.* no group can be written; make one`),
        details: expect.objectContaining({ control }),
      }),
    )
  },
)

test('pids that are required take an rlimit in the sandbox’s user namespace, and no other', () => {
  const asked = limits('best-effort')
  const required: Limits = { ...asked, enforcement: { ...asked.enforcement, pids: 'required' } }
  expect(chooseEnforcement(required, host(null))).toMatchObject({ pids: 'rlimit' })
  expect(() => chooseEnforcement(required, host(null, { nprocPerNamespace: false }))).toThrow('limits.pids')
})
