// How a daemon is known to the one after it: by what tells whether it still lives.
import { readFileSync, readlinkSync } from 'node:fs'
import type { DaemonId } from '../lib/ids.ts'
import { parseJson } from '../lib/parse-json.ts'
import { identify } from './proof.ts'

export interface DaemonMark {
  readonly daemon: string
  readonly pid: number
  readonly startTime: string
  /** A pid means something only within one boot and one pid namespace */
  readonly boot: string
  readonly pidNamespace: string
}

/** This process, under its daemon's id. */
export const markOf = (daemon: DaemonId): DaemonMark => ({
  daemon,
  pid: process.pid,
  startTime: identify(process.pid)?.startTime ?? '',
  boot: bootId(),
  pidNamespace: pidNamespace(),
})

/**
 * A daemon is dead when its mark is of another boot, or of our pid namespace and its pid belongs to nobody or to a
 * process that started at another time. One of another pid namespace can't be judged, and counts as living.
 */
export const isDead = ({ pid, startTime, ...mark }: DaemonMark): boolean => {
  if (mark.boot !== bootId()) return true
  return mark.pidNamespace === pidNamespace() && identify(pid)?.startTime !== startTime
}

/** Reads what a daemon wrote of itself, and perhaps more beside; null where it is not whole. */
export const readMark = (text: string): (DaemonMark & Readonly<Record<string, unknown>>) | null => {
  try {
    const value = parseJson(text) as Readonly<Record<string, unknown>> | null
    const isWhole =
      typeof value?.['pid'] === 'number' &&
      (['daemon', 'startTime', 'boot', 'pidNamespace'] as const).every(
        (key) => typeof value[key] === 'string',
      )
    return isWhole ? (value as unknown as DaemonMark & Readonly<Record<string, unknown>>) : null
  } catch {
    return null
  }
}

export const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

/** The pid namespace of this process, as the kernel names it. */
export const pidNamespace = (): string => readlinkSync('/proc/self/ns/pid')
