// The wall clock of a daemon and of all that it starts: the machine's, and so many milliseconds more.
import { execFileSync } from 'node:child_process'
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Clock extends Disposable {
  /** What is preloaded into whoever is to go by it */
  readonly library: string
  readonly path: string
  /** Puts it so far from the machine's */
  set(offsetMs: number): void
}

/** Makes one in `folder` that is right. */
export function openClock(folder: string): Clock {
  const path = join(folder, 'clock')
  const file = openSync(path, 'w+', 0o600)
  ftruncateSync(file, 8)
  const library = join(folder, 'clock.so')
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, probe('clock')])
  return {
    library,
    path,
    set(offsetMs) {
      const bytes = Buffer.alloc(8)
      bytes.writeBigInt64LE(BigInt(offsetMs))
      writeSync(file, bytes, 0, 8, 0)
    },
    [Symbol.dispose]: () => closeSync(file),
  }
}

/** The source of a C program beside the tests. */
export const probe = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/probes/${name}.c`, import.meta.url))
