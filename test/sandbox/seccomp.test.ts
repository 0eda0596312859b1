// The compiled filter means what the rule file says, for every number, architecture and argument that matters.
import { constants } from 'node:os'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileSeccomp, compileVerdicts, compileWatched } from '../../src/sandbox/seccomp.ts'
import { decideSyscalls, type Arch, type Rule, type Verdict } from '../../src/sandbox/syscalls.ts'
import { auditArch, runBpf, verdict } from '../support/bpf.ts'

const strict = { base: 'strict', allow: [], deny: [] } as const
const architectures: readonly Arch[] = ['x64', 'arm64']
const none = [0n, 0n, 0n, 0n, 0n, 0n]
const high = 0xdeadbeef00000000n
const everyBit = 0xffffffffffffffffn

/** What the rules mean, by plain reading. */
function meaning(rules: readonly Rule[], args: readonly bigint[]): number {
  const rule = rules.find(({ when }) =>
    when.every(({ arg, mask, is }) => is.includes((args[arg] ?? 0n) & mask)),
  )
  if (rule === undefined || rule.action === 'kill') throw new Error('no rule, or a kill, for a named call')
  if (rule.action === 'notify') return verdict.notify
  return rule.action === 'allow' ? verdict.allow : verdict.errno(constants.errno[rule.action])
}

/** Every combination of the values that the conditions name, their neighbours, and bits that must not matter. */
function interestingArguments({ rules }: Verdict): readonly (readonly bigint[])[] {
  let combinations: (readonly bigint[])[] = [none, none.map(() => everyBit)]
  const conditions = rules.flatMap(({ when }) => when)
  for (const arg of new Set(conditions.map((condition) => condition.arg))) {
    const named = conditions.filter((condition) => condition.arg === arg)
    const values = new Set([0n, everyBit, high])
    for (const { mask, is } of named)
      for (const value of is)
        for (const variant of [value, value | high, value | (everyBit & ~mask), value ^ 1n, value + 1n, mask])
          values.add(variant & everyBit)
    combinations = combinations.flatMap((args) => [...values].map((value) => args.with(arg, value)))
  }
  return combinations
}

describe.each(architectures)('the filter for %s', (arch) => {
  const program = compileSeccomp(strict, arch)
  const ask = (nr: number, args: readonly bigint[] = none, under: number = auditArch[arch]): number =>
    runBpf(program, { nr, arch: under, args })

  test('answers every named call as its rules say, whatever the arguments', () => {
    for (const call of decideSyscalls(strict).values()) {
      const nr = call.numbers[arch]
      if (nr === null) continue
      for (const args of interestingArguments(call)) {
        const got = ask(nr, args)
        if (got !== meaning(call.rules, args))
          expect(got, `${call.name}(${args.join(', ')})`).toBe(meaning(call.rules, args))
      }
    }
  })

  test('answers ENOSYS to every number without a name', () => {
    const named = new Set([...decideSyscalls(strict).values()].map(({ numbers }) => numbers[arch]))
    const enosys = verdict.errno(constants.errno.ENOSYS)
    const last = arch === 'x64' ? 0x3fffffff : 0xfffffffe
    for (let nr = 0; nr < 2048; nr++) if (!named.has(nr)) expect(ask(nr), String(nr)).toBe(enosys)
    for (const nr of [4096, 0x1fffffff, last, 0xffffffff]) expect(ask(nr), String(nr)).toBe(enosys)
  })

  test('kills whoever calls as another architecture, whatever the number', () => {
    for (const [name, foreign] of Object.entries(auditArch))
      if (name !== arch)
        for (const nr of [0, 1, 59, 102, 221, 359, 0xffffffff])
          expect(ask(nr, none, foreign)).toBe(verdict.kill)
  })

  test('compares all 64 bits where a rule has no mask, and ignores the high half where the mask does', () => {
    const values = fc.uniqueArray(fc.bigInt({ min: 0n, max: everyBit }), { minLength: 1, maxLength: 5 })
    const property = fc.property(
      values,
      fc.bigInt({ min: 0n, max: everyBit }),
      fc.boolean(),
      (is, other, wide) => {
        const mask = wide ? everyBit : 0xffffffffn
        const rules: readonly Rule[] = [
          { comment: '', when: [{ arg: 3, mask, is: is.map((value) => value & mask) }], action: 'EPERM' },
          { comment: '', when: [], action: 'allow' },
        ]
        const own = { name: '', numbers: { x64: 7, arm64: 7 }, decidedBy: 'strict', rules } as const
        const filter = compileVerdicts([own], arch)
        for (const value of [
          ...is,
          other,
          ...is.map((one) => one ^ (1n << 32n)),
          ...is.map((one) => one ^ 1n),
        ]) {
          const args = none.with(3, value)
          expect(runBpf(filter, { nr: 7, arch: auditArch[arch], args })).toBe(meaning(rules, args))
        }
      },
    )
    fc.assert(property)
  })
})

describe.each(architectures)('behind a door, the two filters for %s', (arch) => {
  const [first, watched] = [compileSeccomp(strict, arch, 'allowlist'), compileWatched(strict, arch)]
  const [before, sockets] = [compileSeccomp(strict, arch), decideSyscalls(strict, 'allowlist').get('socket')]
  const ask = (program: Uint8Array, nr: number, args: readonly bigint[]): number =>
    runBpf(program, { nr, arch: auditArch[arch], args })
  const number = (name: string): number => decideSyscalls(strict).get(name)?.numbers[arch] ?? -1
  const ofInit = [
    [17n, 0x80802n, 0n, 0n, 0n, 0n],
    [16n, 0x80003n, 12n, 0n, 0n, 0n],
  ]

  test('both ask the listener about each socket that one filter refuses, and let the same ones through', () => {
    const nr = number('socket')
    const combinations = sockets === undefined ? [] : interestingArguments(sockets)
    expect(combinations.length).toBeGreaterThan(1000)
    for (const args of combinations) {
      const wanted = ask(before, nr, args) === verdict.allow ? verdict.allow : verdict.notify
      const isOfInit = ofInit.some((call) =>
        call.slice(0, 3).every((value, index) => (args[index] ?? 0n) % (1n << 32n) === value),
      )
      if (ask(first, nr, args) !== wanted && !isOfInit) expect(ask(first, nr, args), args.join()).toBe(wanted)
      if (ask(watched, nr, args) !== wanted) expect(ask(watched, nr, args), args.join()).toBe(wanted)
    }
    // The first filter's exceptions for PID 1 are none of the second's, which comes after it.
    for (const call of ofInit) {
      expect(ask(first, nr, call)).toBe(verdict.allow)
      expect(ask(watched, nr, call)).toBe(verdict.notify)
    }
  })

  test('the second keeps every other listener out, and has no say in the rest', () => {
    const seccomp = number('seccomp')
    const busy = verdict.errno(constants.errno.EBUSY)
    for (const flags of [8n, 9n, 0x28n, 8n | high])
      expect(ask(watched, seccomp, none.with(1, flags))).toBe(busy)
    for (const flags of [0n, 1n, 0x10n, high])
      expect(ask(watched, seccomp, none.with(1, flags))).toBe(verdict.allow)
    for (const nr of [number('execve'), 2000, 0xffffffff]) expect(ask(watched, nr, none)).toBe(verdict.allow)
  })

  test('the second asks of every connection, where the kernel can let one go on', () => {
    const nr = number('connect')
    const old = compileWatched(strict, arch, false)
    for (const length of [0n, 2n, 15n, 16n, 17n, 20n, 28n, 110n, high]) {
      expect(ask(watched, nr, none.with(2, length))).toBe(verdict.notify)
      expect(ask(old, nr, none.with(2, length))).toBe(verdict.allow)
    }
    expect(ask(first, nr, none)).toBe(verdict.allow)
  })

  test('the second asks of what is sent with an address, and not of what is said on a connection', () => {
    const nr = number('sendto')
    for (const address of [1n, high, 0x7fff_0000_0000n])
      for (const flags of [0n, 0x2000_0000n]) {
        const call = none.with(3, flags).with(4, address)
        expect(ask(watched, nr, call)).toBe(verdict.notify)
        expect(ask(compileWatched(strict, arch, false), nr, call)).toBe(verdict.allow)
        expect(ask(first, nr, call)).toBe(verdict.allow)
        expect(ask(watched, nr, none.with(3, flags).with(5, 16n))).toBe(verdict.allow)
      }
  })

  test('a profile that allows every socket has none kept out by the second, but for the kinds that PID 1 opens', () => {
    const open = compileWatched({ ...strict, allow: ['socket'] }, arch)
    expect(ask(open, number('socket'), none.with(0, 40n))).toBe(verdict.allow)
    expect(ask(open, number('socket'), none.with(0, 17n))).toBe(verdict.notify)
    expect(ask(open, number('socket'), none.with(0, 16n).with(1, 3n).with(2, 12n))).toBe(verdict.notify)
  })
})

test('the filter for x64 kills every x32 number', () => {
  const program = compileSeccomp(strict, 'x64')
  for (const nr of [0x40000000, 0x40000001, 0x40000200, 0x7fffffff, 0xfffffffe])
    expect(runBpf(program, { nr, arch: auditArch.x64, args: none })).toBe(verdict.kill)
})
