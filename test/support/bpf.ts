// Runs a classic BPF program as the kernel's seccomp does, and refuses what its checker would refuse.

/** What the filter sees of one system call. */
export interface SeccompData {
  readonly nr: number
  readonly arch: number
  readonly args: readonly bigint[]
}

/** AUDIT_ARCH numbers. */
export const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7, i386: 0x40000003, arm: 0x40000028 } as const

/** SECCOMP_RET values. */
export const verdict = {
  allow: 0x7fff0000,
  kill: 0x80000000,
  notify: 0x7fc00000,
  errno: (errno: number): number => 0x00050000 | errno,
} as const

const longest = 4096 // BPF_MAXINSNS

/** Returns the program's answer. Throws where the kernel would not load the program or it runs off its end. */
export function runBpf(program: Uint8Array, { nr, arch, args }: SeccompData): number {
  const view = new DataView(program.buffer, program.byteOffset, program.byteLength)
  const length = program.byteLength / 8
  if (!Number.isInteger(length) || length === 0 || length > longest) throw new Error(`${length} instructions`)
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, nr, true)
  data.setUint32(4, arch, true)
  for (const [number, value] of args.entries()) data.setBigUint64(16 + number * 8, value, true)
  let [accumulator, index] = [0, 0]
  for (let at = 0; at < length; at++) {
    const [code, k] = [view.getUint16(at * 8, true), view.getUint32(at * 8 + 4, true)]
    const [jt, jf] = [view.getUint8(at * 8 + 2), view.getUint8(at * 8 + 3)]
    if (code === 0x06) return k
    else if (code === 0x20) accumulator = data.getUint32(k, true)
    else if (code === 0x54) accumulator = (accumulator & k) >>> 0
    else if (code === 0xa4) accumulator = (accumulator ^ k) >>> 0
    else if (code === 0x4c) accumulator = (accumulator | index) >>> 0
    else if (code === 0x01) index = k
    else if (code === 0x07) index = accumulator
    else if (code === 0x05) at += k
    else if (code === 0x15) at += accumulator === k ? jt : jf
    else if (code === 0x35) at += accumulator >= k ? jt : jf
    else throw new Error(`instruction ${at} has code 0x${code.toString(16)}`)
  }
  throw new Error('the program ran off its end')
}
