// What one path, host, variable, system call or limit gets under a profile, and the line that decides it.
import { isAbsolute } from 'node:path'
import { nearest } from '../lib/nearest.ts'
import { own } from '../lib/own.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import { explainHost } from './profile-explain-host.ts'
import { explainVariable } from './profile-explain-variable.ts'
import { type Subject, unusable, type Verdict } from './profile-verdict.ts'

export interface Explanation {
  readonly profile: string
  readonly subject: Subject
  readonly name: string
  /** What it gets, in one word or number: `read`, `absent`, `refused`, `536870912` */
  readonly gets: string
  /** Why, in one sentence */
  readonly because: string
  /** File and line that decide, `default` for the schema's word, `always` for what no profile can change */
  readonly decided_by: string
}

/** What one system call gets under a policy; the sandbox knows, since it compiles the filter. */
export type SyscallJudge = (
  name: string,
  policy: ProfileSettings['syscalls'],
) => {
  readonly gets: string
  readonly because: string
  readonly decidedBy: 'strict' | 'allow' | 'deny'
}

/** What an absolute path gets under a profile; the sandbox knows, since it plans the mounts. */
export type PathJudge = (
  profile: ProfileSettings,
  path: string,
) => Promise<{
  readonly gets: string
  readonly because: string
  /** A grant by its list and path, the size of scratch space, nothing that a grant could not change, or what none can */
  readonly decidedBy:
    | { readonly list: 'read' | 'write'; readonly path: string }
    | 'scratch'
    | 'ungranted'
    | 'always'
}>

/** Explains one thing; ERR_USAGE where the name cannot be one. */
export async function explainProfile(
  profile: ProfileSettings,
  subject: Subject,
  name: string,
  judgeSyscall: SyscallJudge,
  judgePath: PathJudge,
): Promise<Explanation> {
  const found = await verdict(profile, subject, name, judgeSyscall, judgePath)
  const decided = found.key === null ? 'always' : (own(profile.decidedAt, found.key) ?? 'default')
  return {
    profile: profile.name,
    subject,
    name,
    gets: found.gets,
    because: found.because,
    decided_by: decided,
  }
}

async function verdict(
  profile: ProfileSettings,
  subject: Subject,
  name: string,
  judge: SyscallJudge,
  judgePath: PathJudge,
): Promise<Verdict> {
  switch (subject) {
    case 'path':
      return explainPath(profile, name, judgePath)
    case 'host':
      return explainHost(profile, name)
    case 'credential':
      return explainCredential(profile, name)
    case 'env':
      return explainVariable(profile, name)
    case 'syscall': {
      if (profile.exec === 'none' && (name === 'execve' || name === 'execveat'))
        return {
          gets: 'refused (EPERM)',
          because: 'the server itself is started, and nothing after it',
          key: 'exec',
        }
      const { gets, because, decidedBy } = judge(name, profile.syscalls)
      const key =
        decidedBy === 'strict'
          ? 'syscalls.base'
          : listKey('syscalls', decidedBy, profile.syscalls[decidedBy], name)
      return { gets, because, key }
    }
    case 'limit':
      return explainLimit(profile, name)
  }
}

/** What the sandbox says of the path, with the key of the profile that says so. */
async function explainPath(profile: ProfileSettings, name: string, judge: PathJudge): Promise<Verdict> {
  if (!isAbsolute(name)) throw unusable('path', name, 'an absolute path')
  if (name.includes('\0')) throw unusable('path', name, 'a path without NUL')
  const { gets, because, decidedBy } = await judge(profile, name)
  const { filesystem } = profile
  if (typeof decidedBy === 'object') {
    const index = filesystem[decidedBy.list].findIndex(({ path }) => path === decidedBy.path)
    return { gets, because, key: `filesystem.${decidedBy.list}[${index}]` }
  }
  if (decidedBy === 'always') return { gets, because, key: null }
  if (decidedBy === 'scratch')
    return { gets, because: `${because}; ${filesystem.tmpBytes} bytes`, key: 'filesystem.tmp_bytes' }
  return filesystem.mounts === 'none'
    ? { gets, because: `${because}, and no mounts are allowed`, key: 'filesystem.read' }
    : {
        gets,
        because: `${because}, though a server’s entry may mount to ${filesystem.mounts}`,
        key: 'filesystem.mounts',
      }
}

const injections = {
  egress: 'the sandbox holds a placeholder, and the proxy puts the secret in its place',
  meta: 'the secret is in the one request that needs it',
  file: 'the secret is in a private file, for one call’s own process',
  env: 'the secret is in the environment, for one call’s own process',
} as const

function explainCredential({ credentials }: ProfileSettings, name: string): Verdict {
  if (!Object.hasOwn(injections, name))
    throw unusable('credential', name, `a kind of injection: ${Object.keys(injections).join(', ')}`)
  const how = injections[name as keyof typeof injections]
  const index = credentials.indexOf(name)
  if (index < 0) return { gets: 'refused', because: `the list does not have it: ${how}`, key: 'credentials' }
  return { gets: 'allowed', because: `a server’s entry may ask for it: ${how}`, key: `credentials[${index}]` }
}

const limits = ['memory', 'pids', 'cpu', 'open_files', 'file_bytes', 'tmp'] as const

function explainLimit({ limits: values, filesystem }: ProfileSettings, name: string): Verdict {
  const asked = limits.find((limit) => [limit, `${limit}_bytes`].includes(name))
  switch (asked) {
    case 'memory':
      return limited(
        values.memoryBytes,
        'bytes for the whole sandbox',
        values.enforcement.memory,
        'limits.memory_bytes',
      )
    case 'pids':
      return limited(values.pids, 'processes and threads', values.enforcement.pids, 'limits.pids')
    case 'cpu':
      return limited(values.cpu, 'cores', values.enforcement.cpu, 'limits.cpu')
    case 'open_files':
      return limited(
        values.openFiles,
        'open files for each process',
        values.enforcement.files,
        'limits.open_files',
      )
    case 'file_bytes':
      return limited(values.fileBytes, 'bytes for each file', values.enforcement.files, 'limits.file_bytes')
    case 'tmp':
      return limited(filesystem.tmpBytes, 'bytes for each scratch folder', 'required', 'filesystem.tmp_bytes')
    case undefined: {
      const meant = nearest(name, limits)
      throw unusable(
        'limit',
        name,
        `one of ${limits.join(', ')}`,
        meant === null ? null : `did you mean ${meant}?`,
      )
    }
  }
}

function limited(value: number, unit: string, enforcement: string, key: string): Verdict {
  return { gets: String(value), because: `${value} ${unit}, ${enforcement}`, key }
}

function listKey(section: string, list: string, names: readonly string[], name: string): string {
  return `${section}.${list}[${names.indexOf(name)}]`
}
