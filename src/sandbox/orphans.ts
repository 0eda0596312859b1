// What a server left running outside of its own tree: whoever loses its parent in a sandbox becomes a child of PID 1.
import { readFileSync } from 'node:fs'

/**
 * Children of a sandbox's PID 1 beside `own`, which are the server itself and the relay of a network; null where PID 1 is not
 * ours or not to be seen, as in gVisor, on another machine, or without CONFIG_PROC_CHILDREN. It is one small file to read.
 */
export function orphansOf(initPid: number, own: number): number | null {
  try {
    if (readFileSync(`/proc/${initPid}/comm`, 'latin1') !== 'init\n') return null
    const children = readFileSync(`/proc/${initPid}/task/${initPid}/children`, 'latin1').split(' ')
    return Math.max(0, children.filter((pid) => pid !== '').length - own)
  } catch {
    return null
  }
}
