// What the engine answers, as far as anything here depends on it.
import type { IncomingMessage } from 'node:http'
import { parseJson } from '../../lib/parse-json.ts'

/** What `GET /info` says, as far as anything here depends on it. */
export interface EngineInfo {
  readonly ID: string
  readonly Name: string
  readonly ServerVersion: string
  readonly KernelVersion: string
  readonly OperatingSystem: string
  readonly OSType: string
  readonly Architecture: string
  readonly Driver: string
  readonly DockerRootDir: string
  readonly CgroupDriver: string
  /** `1` or `2`; engines before 20.10 don't say */
  readonly CgroupVersion?: string
  readonly SecurityOptions: readonly string[] | null
  readonly Runtimes: Readonly<Record<string, unknown>>
  readonly DefaultRuntime: string
  /** Processors, the most that a container may be given */
  readonly NCPU: number
  /** Which limits the engine can hold */
  readonly MemoryLimit: boolean
  readonly SwapLimit: boolean
  readonly CpuCfsQuota: boolean
  readonly PidsLimit: boolean
}

/** A file of a container, a link not followed. */
export interface FileStat {
  /** Permission bits */
  readonly mode: number
  readonly isFile: boolean
  readonly isFolder: boolean
  /** Bytes */
  readonly size: number
  /** When it was written, whole ms */
  readonly mtimeMs: number
  /** Where it leads, absolute in the container; empty where it is no link */
  readonly linkTarget: string
}

/** One of a container's streams. */
export type StreamName = 'stdin' | 'stdout' | 'stderr'

/** What happened to a container, as the engine tells it. */
export interface ContainerEvent {
  readonly id: string
  /** `oom`, `die`, `destroy` and others */
  readonly action: string
}

/** One line of a pull's progress, as the engine streams it. */
export interface PullProgress {
  readonly status?: string
  readonly id?: string
  readonly error?: string
  readonly progressDetail?: { readonly current?: number; readonly total?: number }
}

/** A limit on one request; `ms` has a default that fits the request. */
export interface Waiting {
  readonly signal?: AbortSignal
  readonly ms?: number
}

// The engine says it in a header: base64 of JSON, the mode as Go has it, whose type bits are above the permissions.
export const statIn = ({ headers }: IncomingMessage): FileStat => {
  const text = Buffer.from(String(headers['x-docker-container-path-stat']), 'base64').toString()
  const { mode, size, mtime, linkTarget } = parseJson(text) as Record<'mode' | 'size', number> &
    Record<'mtime' | 'linkTarget', string>
  const type = { isFile: mode >>> 24 === 0, isFolder: mode >>> 31 === 1 }
  return { mode: mode & 0o777, ...type, size, mtimeMs: Date.parse(mtime), linkTarget }
}

/** What a line tells; of nothing where it is none, as where the engine went away amid it. */
export const eventIn = (line: string): ContainerEvent => {
  const { Actor, Action } = said(line) as { Actor?: { ID?: string }; Action?: string }
  return { id: Actor?.ID ?? '', action: Action ?? '' }
}

const said = (line: string): object => {
  try {
    return Object(parseJson(line)) as object
  } catch {
    return {}
  }
}
