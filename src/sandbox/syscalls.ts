// Which system calls a sandbox gets and why: the strict rules of sandbox/seccomp, changed by a profile's allow and deny.
import { readFileSync } from 'node:fs'
import { SallyportError } from '../errors.ts'
import { nearest } from '../lib/nearest.ts'
import { parseJson } from '../lib/parse-json.ts'
import type { Network, SyscallPolicy } from './spec.ts'

/** Architectures that a filter can be made for, as Node names them. */
export type Arch = 'x64' | 'arm64'

/** What the kernel does with a call: run it, end the process, answer with an errno, or have the filter's listener answer. */
export type Action = 'allow' | 'kill' | 'notify' | Refused

/** The errno of a refusal. */
export type Refused = 'EPERM' | 'EBUSY' | 'ENOSYS' | 'EAFNOSUPPORT' | 'EPROTONOSUPPORT'

/** Holds when the argument, masked, is one of the values. */
export interface Condition {
  readonly arg: number
  /** All 64 bits where the file has none */
  readonly mask: bigint
  readonly is: readonly bigint[]
}

/** One step of a decision: applies when all conditions hold. */
export interface Rule {
  readonly comment: string
  readonly when: readonly Condition[]
  readonly action: Action
}

/** What one call gets: rules in order, the last without conditions. */
export interface Verdict {
  readonly name: string
  /** The number on each architecture, null where it has no such call */
  readonly numbers: Readonly<Record<Arch, number | null>>
  readonly decidedBy: 'strict' | 'allow' | 'deny'
  readonly rules: readonly Rule[]
}

/** The rules for calls that have no name here. */
export const outliers = { foreign: outlier('foreign'), unknown: outlier('unknown') } as const

/**
 * Decides every known system call under a policy.
 *
 * A name in `deny` answers EPERM, also where `allow` has it; a name in `allow` is allowed with every argument, so a
 * conditional rule of the strict set is gone for it. A sandbox whose network is an allowlist has the rules `withEgress`
 * before the strict ones: they are for its PID 1, which takes them from everybody before the server is there. And what
 * is refused of `socket` is told there: the listener of `decideWatched` answers, and where there is none the kernel does,
 * with ENOSYS. Throws ERR_PROFILE_INVALID for a name that no architecture has.
 */
export function decideSyscalls(
  policy: SyscallPolicy,
  network: Network['mode'] = 'none',
): ReadonlyMap<string, Verdict> {
  const table = network === 'none' ? strictVerdicts() : verdictsWithEgress()
  const verdicts = new Map(table)
  for (const [list, action] of [
    ['allow', 'allow'],
    ['deny', 'EPERM'],
  ] as const)
    for (const name of policy[list]) {
      const known = table.get(name)
      if (known === undefined) throw unknownName(name, `syscalls.${list}`, table.keys())
      const rule = { comment: `The profile's syscalls.${list} names it.`, when: [], action }
      verdicts.set(name, { ...known, decidedBy: list, rules: [rule] })
    }
  return verdicts
}

const lookedAt = new Set(['connect', 'sendto'])

/**
 * Decides what the second filter of a sandbox with an allowlist says, which PID 1 loads with a listener: the refusals of
 * `socket` are asked of it, and nobody else may have one; `connect` and a `sendto` with an address are, where the kernel lets
 * a call go on that was looked at. Calls that are not here are the first filter's business.
 */
export function decideWatched(policy: SyscallPolicy, letsGoOn: boolean): readonly Verdict[] {
  watched ??= [...readVerdicts(ruleFile().watched).values()].filter(
    ({ rules }) => rules[0] !== outliers.unknown,
  )
  const asked = letsGoOn ? watched : watched.filter(({ name }) => !lookedAt.has(name))
  return asked.map((verdict) => {
    const first =
      verdict.name === 'socket' ? decideSyscalls(policy, 'allowlist').get(verdict.name) : undefined
    return { ...verdict, rules: [...verdict.rules, ...(first?.rules ?? [])] }
  })
}

/** Tells what one call gets and why. Throws ERR_PROFILE_INVALID, with the nearest name, where there is no such call. */
export function explainSyscall(name: string, policy: SyscallPolicy): Verdict {
  const verdicts = decideSyscalls(policy)
  const verdict = verdicts.get(name)
  if (verdict === undefined) throw unknownName(name, 'syscall', verdicts.keys())
  return verdict
}

interface RuleGroup {
  readonly comment: string
  readonly names: readonly string[]
  readonly when?: readonly {
    readonly arg: number
    readonly mask?: string
    readonly is: readonly string[]
  }[]
  readonly action: Action
}

interface RuleFile {
  readonly foreign: { readonly comment: string; readonly action: Action }
  readonly unknown: { readonly comment: string; readonly action: Action }
  readonly withEgress: readonly RuleGroup[]
  readonly watched: readonly RuleGroup[]
  readonly rules: readonly RuleGroup[]
}

interface NumberFile {
  readonly numbers: Readonly<Record<string, readonly [number | null, number | null]>>
}

let strict: ReadonlyMap<string, Verdict> | undefined
let withEgress: ReadonlyMap<string, Verdict> | undefined
let watched: readonly Verdict[] | undefined

function strictVerdicts(): ReadonlyMap<string, Verdict> {
  strict ??= readVerdicts(ruleFile().rules)
  return strict
}

function verdictsWithEgress(): ReadonlyMap<string, Verdict> {
  if (withEgress !== undefined) return withEgress
  const { withEgress: first, rules } = ruleFile()
  const verdicts = new Map(readVerdicts([...first, ...rules]))
  const socket = verdicts.get('socket')
  if (socket !== undefined) verdicts.set('socket', { ...socket, rules: socket.rules.map(told) })
  return (withEgress = verdicts)
}

function told(rule: Rule): Rule {
  return rule.action === 'allow' || rule.action === 'kill' ? rule : { ...rule, action: 'notify' }
}

function ruleFile(): RuleFile {
  return read('default.json') as RuleFile
}

function readVerdicts(groups: readonly RuleGroup[]): ReadonlyMap<string, Verdict> {
  const rules = new Map<string, Rule[]>()
  for (const group of groups) {
    const when = (group.when ?? []).map(({ arg, mask, is }) => ({
      arg,
      mask: BigInt(mask ?? '0xffffffffffffffff'),
      is: is.map(BigInt),
    }))
    const rule = { comment: group.comment, when, action: group.action }
    for (const name of group.names) rules.set(name, [...(rules.get(name) ?? []), rule])
  }
  const verdicts = new Map<string, Verdict>()
  for (const [name, [x64, arm64]] of Object.entries((read('syscalls.json') as NumberFile).numbers)) {
    const own = rules.get(name) ?? [outliers.unknown]
    verdicts.set(name, { name, numbers: { x64, arm64 }, decidedBy: 'strict', rules: own })
  }
  return verdicts
}

function outlier(which: 'foreign' | 'unknown'): Rule {
  return { ...ruleFile()[which], when: [] }
}

/** The files are part of the package and held to their shape by a test. */
function read(file: string): unknown {
  return parseJson(readFileSync(new URL(`../../sandbox/seccomp/${file}`, import.meta.url), 'utf8'))
}

function unknownName(name: string, where: string, names: Iterable<string>): SallyportError {
  const meant = nearest(name, names)
  const hint = meant === null ? '' : `; did you mean ${meant}?`
  return new SallyportError(
    'ERR_PROFILE_INVALID',
    `${where}: no system call is named ${JSON.stringify(name)}${hint}`,
    { name },
  )
}
