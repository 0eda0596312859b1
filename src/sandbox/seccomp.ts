// Turns the system call rules into the classic BPF program that the kernel runs before every call of a sandbox.
import { constants } from 'node:os'
import type { Network, SyscallPolicy } from './spec.ts'
import {
  decideSyscalls,
  decideWatched,
  outliers,
  type Action,
  type Arch,
  type Condition,
  type Rule,
  type Verdict,
} from './syscalls.ts'

/*
 * struct seccomp_data (seccomp(2)):  0 nr   4 arch   8 instruction pointer   16 + 8n argument n, low half first
 *
 *   arch is ours? ── no ──> foreign
 *   x32 number?   ── yes ─> foreign                      (x64 only)
 *   binary search over ranges of numbers that share their rules
 *     └─ rules in order: test arguments, return an action
 */

/** One `struct sock_filter`: code, jump if true, jump if false, constant. */
type Instruction = readonly [code: number, jt: number, jf: number, k: number]
type Program = readonly Instruction[]

/** A run of numbers that share their rules, from `first` to the next range. */
interface Range {
  readonly first: number
  readonly rules: readonly Rule[]
}

const LOAD = 0x20 // BPF_LD | BPF_W | BPF_ABS
const AND = 0x54 // BPF_ALU | BPF_AND | BPF_K
const JUMP = 0x05 // BPF_JMP | BPF_JA
const EQUAL = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
const AT_LEAST = 0x35 // BPF_JMP | BPF_JGE | BPF_K
const RETURN = 0x06 // BPF_RET | BPF_K

const auditArch: Record<Arch, number> = { x64: 0xc000003e, arm64: 0xc00000b7 }
const x32Bit = 0x40000000
/** What a tracer writes to skip a call: not x32, and no call either */
const skipped = 0xffffffff

/**
 * Compiles a policy to the raw program that `bwrap --seccomp FD` reads: an array of `struct sock_filter`, little endian.
 *
 * Throws ERR_PROFILE_INVALID for a name in `allow` or `deny` that is no system call. Deterministic.
 */
export function compileSeccomp(
  policy: SyscallPolicy,
  arch: Arch,
  network: Network['mode'] = 'none',
): Uint8Array {
  return compileVerdicts(decideSyscalls(policy, network).values(), arch)
}

/**
 * Compiles the filter that PID 1 loads beside it, with a listener, in a sandbox whose network is an allowlist. `letsGoOn` is
 * whether the kernel has SECCOMP_USER_NOTIF_FLAG_CONTINUE, as since 5.5.
 */
export function compileWatched(policy: SyscallPolicy, arch: Arch, letsGoOn = true): Uint8Array {
  return compileVerdicts(decideWatched(policy, letsGoOn), arch, {
    comment: 'The first filter decides.',
    when: [],
    action: 'allow',
  })
}

/** The compiler proper: any verdicts, each number at most once. */
export function compileVerdicts(
  verdicts: Iterable<Verdict>,
  arch: Arch,
  unknown: Rule = outliers.unknown,
): Uint8Array {
  const foreign = returning(outliers.foreign.action)
  const search = searchTree(ranges(verdicts, arch, [unknown]))
  const program: Program = [
    [LOAD, 0, 0, 4],
    [EQUAL, 1, 0, auditArch[arch]],
    foreign,
    [LOAD, 0, 0, 0],
    ...search,
  ]
  return encode(program)
}

/** Sorted ranges that cover all 32-bit numbers; neighbours differ. */
function ranges(verdicts: Iterable<Verdict>, arch: Arch, unknown: readonly Rule[]): readonly Range[] {
  const byNumber = new Map<number, readonly Rule[]>()
  for (const { numbers, rules } of verdicts) {
    const number = numbers[arch]
    if (number !== null) byNumber.set(number, rules)
  }
  const named = [...byNumber.keys()]
  for (const number of named) if (!byNumber.has(number + 1)) byNumber.set(number + 1, unknown)
  if (arch === 'x64') byNumber.set(x32Bit, [outliers.foreign]).set(skipped, unknown)

  const sorted = [...byNumber].sort(([a], [b]) => a - b)
  const merged: { first: number; rules: readonly Rule[] }[] = [{ first: 0, rules: unknown }]
  for (const [first, rules] of sorted) {
    const last = merged.at(-1)
    if (last !== undefined && sameEffect(last.rules, rules)) continue
    if (last?.first === first) last.rules = rules
    else merged.push({ first, rules })
  }
  return merged
}

/** Unconditional rules are the same when their action is; conditional ones only when they are the same list. */
function sameEffect(a: readonly Rule[], b: readonly Rule[]): boolean {
  if (a === b) return true
  const [one, other] = [a[0], b[0]]
  return one?.when.length === 0 && other?.when.length === 0 && one.action === other.action
}

/** Finds the range of the number in the accumulator. Every path returns, so the halves need no exits. */
function searchTree(sorted: readonly Range[]): Program {
  const middle = sorted.length >> 1
  const pivot = sorted[middle]
  if (pivot === undefined || middle === 0) return decision(sorted[0]?.rules ?? [])
  const below = searchTree(sorted.slice(0, middle))
  const above = searchTree(sorted.slice(middle))
  // A conditional jump spans 255 instructions at most
  return below.length <= 255
    ? [[AT_LEAST, below.length, 0, pivot.first], ...below, ...above]
    : [[AT_LEAST, 0, 1, pivot.first], [JUMP, 0, 0, below.length], ...below, ...above]
}

/** Rules in order; what follows the first that applies is never reached, and no rule at all refuses. */
function decision(rules: readonly Rule[]): Program {
  const program: Instruction[] = []
  for (const { when, action } of rules) {
    let step: Program = [returning(action)]
    for (const condition of [...when].reverse()) step = [...test(condition, step.length), ...step]
    program.push(...step)
    if (when.length === 0) return program
  }
  return [...program, returning('EPERM')]
}

/** Falls through when the condition holds, else jumps over the test's end and `skip` more instructions. */
function test({ arg, mask, is }: Condition, skip: number): Program {
  const [low, high] = [16 + 8 * arg, 20 + 8 * arg]
  let program: Program = []
  for (const value of [...is].reverse()) {
    const miss = program.length === 0 ? skip : 0
    const hit = program.length
    const lowHalf = compare(low, lower(mask), lower(value), hit, miss)
    program =
      mask >> 32n === 0n
        ? [...lowHalf, ...program]
        : [
            ...compare(high, lower(mask >> 32n), lower(value >> 32n), 0, lowHalf.length + miss),
            ...lowHalf,
            ...program,
          ]
  }
  return program
}

function compare(offset: number, mask: number, value: number, hit: number, miss: number): Program {
  return [
    [LOAD, 0, 0, offset],
    [AND, 0, 0, mask],
    [EQUAL, hit, miss, value],
  ]
}

function lower(value: bigint): number {
  return Number(value & 0xffffffffn)
}

function returning(action: Action): Instruction {
  switch (action) {
    case 'allow':
      return [RETURN, 0, 0, 0x7fff0000]
    case 'kill':
      return [RETURN, 0, 0, 0x80000000]
    case 'notify':
      return [RETURN, 0, 0, 0x7fc00000]
    case 'EPERM':
    case 'EBUSY':
    case 'ENOSYS':
    case 'EAFNOSUPPORT':
    case 'EPROTONOSUPPORT':
      return [RETURN, 0, 0, 0x00050000 | constants.errno[action]]
  }
}

function encode(program: Program): Uint8Array {
  const bytes = new Uint8Array(program.length * 8)
  const view = new DataView(bytes.buffer)
  for (const [index, [code, jt, jf, k]] of program.entries()) {
    view.setUint16(index * 8, code, true)
    view.setUint8(index * 8 + 2, jt)
    view.setUint8(index * 8 + 3, jf)
    view.setUint32(index * 8 + 4, k, true)
  }
  return bytes
}
