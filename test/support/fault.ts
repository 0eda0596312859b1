// Faults that no test can wait for: a daemon that dies at one exact write, and a disk that answers with an errno.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../fixtures/probes/fault.c', import.meta.url))

export type Fault =
  | `kill-${'before' | 'after' | 'half'} ${string}`
  | { readonly errno: keyof typeof constants.errno; readonly needle: string }
  | { readonly torn: keyof typeof constants.errno; readonly needle: string }
  | { readonly sync: keyof typeof constants.errno }
  | { readonly folder: keyof typeof constants.errno }
  | { readonly stuck: keyof typeof constants.errno }
  | { readonly read: keyof typeof constants.errno }
  | { readonly fork: keyof typeof constants.errno }

export interface Faults {
  /** What a daemon must be started with */
  readonly env: Readonly<Record<string, string>>
  /** From now on this befalls whoever was started so */
  arm(fault: Fault): void
  disarm(): void
}

/** Compiles the library into `folder`; nothing happens until it is armed. */
export function faults(folder: string): Faults {
  const library = join(folder, 'fault.so')
  const control = join(folder, 'fault')
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, '-x', 'c', '-'], {
    input: readFileSync(source),
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  return {
    env: { LD_PRELOAD: library, SALLYPORT_FAULT: control },
    arm: (fault) => writeFileSync(control, textOf(fault)),
    disarm: () => existsSync(control) && rmSync(control),
  }
}

function textOf(fault: Fault): string {
  if (typeof fault === 'string') return fault
  if ('fork' in fault) return `fork ${constants.errno[fault.fork]}`
  if ('torn' in fault) return `torn ${constants.errno[fault.torn]} ${fault.needle}`
  if ('read' in fault) return `read ${constants.errno[fault.read]}`
  if ('folder' in fault) return `folder ${constants.errno[fault.folder]}`
  if ('stuck' in fault) return `stuck ${constants.errno[fault.stuck]}`
  return 'sync' in fault
    ? `sync ${constants.errno[fault.sync]}`
    : `errno ${constants.errno[fault.errno]} ${fault.needle}`
}
