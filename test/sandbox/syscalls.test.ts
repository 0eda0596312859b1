// The rule files say something about every call, and a profile can change it by name.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decideSyscalls, explainSyscall } from '../../src/sandbox/syscalls.ts'

const strict = { base: 'strict', allow: [], deny: [] } as const
const json = (file: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(`../../sandbox/seccomp/${file}`, import.meta.url), 'utf8')) as Record<
    string,
    unknown
  >

describe('sandbox/seccomp/default.json', () => {
  const { rules, withEgress, watched } = json('default.json') as Record<string, Record<string, unknown>[]>
  const numbers = json('syscalls.json')['numbers'] as Record<string, (number | null)[]>

  test('gives every rule a comment, known keys and a known action', () => {
    const actions = ['allow', 'notify', 'EPERM', 'EBUSY', 'ENOSYS', 'EAFNOSUPPORT', 'EPROTONOSUPPORT']
    for (const rule of [...(rules ?? []), ...(withEgress ?? []), ...(watched ?? [])]) {
      expect(
        Object.keys(rule).filter((key) => !['comment', 'names', 'when', 'action'].includes(key)),
      ).toEqual([])
      expect(rule['comment']).toMatch(/^\S.{10,}[.)]$/)
      expect(actions).toContain(rule['action'])
      for (const condition of (rule['when'] ?? []) as Record<string, unknown>[]) {
        expect(Object.keys(condition).filter((key) => !['arg', 'mask', 'is'].includes(key))).toEqual([])
        expect([0, 1, 2, 3, 4, 5]).toContain(condition['arg'])
      }
    }
  })

  test('names only calls that exist, and decides each of them to the end exactly once', () => {
    const final = new Map<string, number>()
    for (const rule of rules ?? [])
      for (const name of rule['names'] as string[]) {
        expect(numbers, name).toHaveProperty([name])
        expect(final.get(name) ?? 0, `${name} has a rule after its last`).toBe(0)
        if (rule['when'] === undefined) final.set(name, 1)
      }
    expect(Object.keys(numbers).filter((name) => !final.has(name))).toEqual([])
  })

  test('compares no value that its mask hides', () => {
    for (const { name, rules: own } of decideSyscalls(strict).values())
      for (const { when } of own)
        for (const { mask, is } of when) for (const value of is) expect(value & ~mask, name).toBe(0n)
  })

  test('gives no two calls of one architecture the same number', () => {
    for (const index of [0, 1]) {
      const all = Object.values(numbers).flatMap((pair) => pair[index] ?? [])
      expect(new Set(all).size).toBe(all.length)
    }
  })
})

describe('a profile', () => {
  test('allows a refused call by name, without conditions', () => {
    expect(explainSyscall('ptrace', strict)).toMatchObject({
      decidedBy: 'strict',
      rules: [{ action: 'EPERM' }],
    })
    expect(explainSyscall('clone', { ...strict, allow: ['clone'] })).toMatchObject({
      decidedBy: 'allow',
      rules: [{ action: 'allow', when: [] }],
    })
  })

  test('refuses an allowed call by name, also where it allows it too', () => {
    const policy = { base: 'strict', allow: ['connect'], deny: ['connect'] } as const
    expect(explainSyscall('connect', policy)).toMatchObject({
      decidedBy: 'deny',
      rules: [{ action: 'EPERM' }],
    })
  })

  test('is refused when it names a call that does not exist, with the nearest that does', () => {
    const policy = { ...strict, allow: ['io_uring_steup'] }
    expect(() => decideSyscalls(policy)).toThrow(
      expect.objectContaining({
        code: 'ERR_PROFILE_INVALID',
        message: 'syscalls.allow: no system call is named "io_uring_steup"; did you mean io_uring_setup?',
      }),
    )
    expect(() => explainSyscall('frobnicate', strict)).toThrow('no system call is named "frobnicate"')
  })
})
