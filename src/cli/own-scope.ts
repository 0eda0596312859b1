// A control group for a daemon in the background that it may divide among its sandboxes. A login's own group, which it would start
// in, is shared with the login's other programs, and version 2 sets no limit below a group that others are in.
import { answerOf } from '../lib/exec.ts'
import { type CgroupSupport, detectCgroups } from '../sandbox/cgroup/level.ts'

const systemdRun = '/usr/bin/systemd-run'
const asked = [
  '--user',
  '--scope',
  '--quiet',
  '--collect',
  '--property=Delegate=yes',
  '--description=Sallyport',
]

/** What systemd is given to make a group, which takes it some 20 ms at rest */
const patienceMs = 5000

export interface OwnScope {
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * The words before a command that start it in a group of its own, where this user's systemd makes one, and what they find it by;
 * none where there is no such systemd, it does not answer within five seconds, or the command would have a group without it: root
 * takes the top of the hierarchy, and of version 1 what root gave. The group ends with the user's systemd: at the last logout, unless
 * the user lingers.
 */
export async function ownScope(
  env: OwnScope['env'],
  level: CgroupSupport['level'] = detectCgroups().level,
  uid = process.geteuid?.() ?? -1,
  folder = `/run/user/${uid}`,
): Promise<OwnScope> {
  const none = { words: [], env }
  if (uid === 0 || level === 'v1') return none
  // A host that starts a daemon passes on hardly a variable, and systemd-run takes its user's systemd from this one.
  const found = { ...env, XDG_RUNTIME_DIR: env['XDG_RUNTIME_DIR'] || folder }
  const tried = await answerOf(systemdRun, [...asked, '--', '/bin/true'], {
    input: '',
    env: found,
    ms: patienceMs,
  })
  return tried.problem === null ? { words: [systemdRun, ...asked, '--'], env: found } : none
}
