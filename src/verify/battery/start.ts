// Probes 121, 122 and 132: what a sandbox is started with and who holds its streams, as it is seen from outside.
import { readFile, readdir, readlink } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { comes, finds, seen, stops, type Attempt, type Watched } from '../attempt.ts'
import { inapplicable } from '../gvisor/inapplicable.ts'
import type { Probe } from '../probe.ts'
import { otherStart } from './privileges.ts'
import { both, withoutFilter, withoutOtherFilters } from '../lab/removal.ts'

/** Options of the tool beside which another layer stands: without them nothing of it is to be seen. */
const layered = ['--unshare-user', '--new-session', '--clearenv', '--cap-drop'] as const

/** For a stream that nobody ends to be seen to go on. */
const keptMs = 100

const fieldOf = async (pid: number, name: string): Promise<string> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return new RegExp(`^${name}:[\\t ]*(.*)$`, 'm').exec(status)?.[1] ?? ''
}

/** The sandbox tool, which stays as the parent of PID 1. */
const toolOf = async ({ pid }: Watched): Promise<number> => Number(await fieldOf(pid, 'PPid'))

const sessionOf = async (pid: number): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3])
}

/** What each open file is, in the order of their numbers. */
const descriptorsOf = async (pid: number): Promise<readonly string[]> => {
  const folder = `/proc/${pid}/fd`
  const numbers = (await readdir(folder)).map(Number).toSorted((one, other) => one - other)
  return Promise.all(numbers.map((fd) => readlink(`${folder}/${fd}`)))
}

const amiss = (text: string): string | null => (text === '' ? null : text.trim().replaceAll('\n', ', '))

/** What the daemon's side gave the launcher: it told it before it was one. */
const ownStart = (launcher: string): Attempt =>
  seen('start of the launcher', () => readFile(`${launcher}.found`, 'utf8'), amiss)

/** Nobody but root sees it; it is wiped, so that whoever could look into PID 1 finds nothing there. */
const ownVariables = seen(
  'variables of PID 1',
  async ({ pid }) =>
    (await readFile(`/proc/${pid}/environ`)).every((byte) => byte === 0) ? '' : 'some are left',
  amiss,
)

const sharedMounts = (text: string): string | null =>
  / shared:\d+ /.test(text) ? 'shared with whoever started the launcher' : null

const ownMounts = seen(
  'mounts of the sandbox tool',
  async (program) => readFile(`/proc/${await toolOf(program)}/mountinfo`, 'utf8'),
  sharedMounts,
)

/** Only root can leave its groups; those of an ordinary user's daemon stay, and reach nothing beyond what is mounted. */
const ownGroups = seen(
  'groups of PID 1',
  ({ pid }) => fieldOf(pid, 'Groups'),
  (text) => (text.trim() === '' ? null : `the launcher’s: ${text.trim()}`),
)

/** The engine gives the groups that it was asked for, which is the user's own alone. */
const foreignGroups = seen(
  'groups of PID 1',
  async ({ pid }) => {
    const [groups, gids] = await Promise.all(['Groups', 'Gid'].map((name) => fieldOf(pid, name)))
    const own = gids?.split('\t') ?? []
    return (groups ?? '')
      .split(' ')
      .filter((group) => group !== '' && !own.includes(group))
      .join('\n')
  },
  amiss,
)

/** Of PID 1 itself, at which root alone may look. */
const passedToPid1 = (folder: string): Attempt =>
  seen(
    'open files of PID 1',
    async ({ pid }) => (await descriptorsOf(pid)).join('\n'),
    (text) => (text.split('\n').includes(folder) ? 'a folder that was open in the daemon' : null),
  )

const streamThatNobodyClosed = seen(
  'stderr that nobody closed',
  ({ stderrEnd }) => Promise.race([stderrEnd().then(() => ''), pause(keptMs, 'it is open')]),
  amiss,
)

/** Nothing, once its stderr has come to an end. */
const endOf = async (program: Watched): Promise<string> => {
  await comes(program.stderrEnd(), program, 'somebody else holds it open')
  return ''
}

const passedOn = (word: string, folder: string): readonly Attempt[] => [
  seen(
    'variables of the sandbox tool',
    async (program) => readFile(`/proc/${await toolOf(program)}/environ`, 'utf8'),
    (text) => (text.includes(word) ? 'the launcher’s' : null),
  ),
  seen(
    'open files of the sandbox tool',
    async (program) => (await descriptorsOf(await toolOf(program))).join('\n'),
    (text) => (text.split('\n').includes(folder) ? 'a folder that was open in the launcher' : null),
  ),
  seen(
    'masks and signals of the sandbox tool',
    async (program) => {
      const tool = await toolOf(program)
      const [ignored, mask] = await Promise.all(['SigIgn', 'Umask'].map((name) => fieldOf(tool, name)))
      return [
        ...((BigInt(`0x${ignored}`) & 1n) === 0n ? [] : ['ignores a hang-up']),
        ...(mask === '0077' || mask === '0000' ? [] : [`umask ${mask}`]),
      ].join('\n')
    },
    amiss,
  ),
  seen(
    'sessions of the sandbox tool and of PID 1',
    async (program) => {
      const both = await Promise.all(
        [await toolOf(program), program.pid].map(async (pid) => (await sessionOf(pid)) === pid),
      )
      return both.every(Boolean) ? '' : 'one of somebody else’s'
    },
    amiss,
  ),
  seen(
    'options of the sandbox tool',
    ({ launched }) => {
      const options = launched?.plan.driver === 'bubblewrap' ? launched.plan.arguments : []
      return Promise.resolve(layered.filter((option) => !options.includes(option)).join('\n'))
    },
    (text) => (text === '' ? null : `without ${text.replaceAll('\n', ', ')}`),
  ),
]

/** PID 1 is shut to everybody but root; to others its third stream says as much. */
const ownStreams = seen(
  'stdin and stdout of the server in PID 1',
  async ({ pid }) => {
    const [server = ''] = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8'))
      .trim()
      .split(' ')
      .slice(-1)
    const streams = await Promise.all([0, 1].map((fd) => readlink(`/proc/${server}/fd/${fd}`)))
    const held = await descriptorsOf(pid)
    return streams.flatMap((stream, fd) => (held.includes(stream) ? [`${fd}`] : [])).join('\n')
  },
  (text) => (text === '' ? null : `held open: ${text.replaceAll('\n', ', ')}`),
)

/** The control channel, and where there is a relay what is told to it. */
const socketsOfPid1 = 2

/** Nobody's streams, sockets and what waits for events: all that PID 1 and the relay beside it need. */
const ownFiles = seen(
  'open files of PID 1 and of its relay',
  async ({ pid }) => {
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')
    const names = await Promise.all(children.map((child) => fieldOf(Number(child), 'Name')))
    const [held, ...relay] = await Promise.all(
      [pid, ...children.filter((_, index) => names[index] === 'egress').map(Number)].map(descriptorsOf),
    )
    const sockets = held?.filter((file) => file.startsWith('socket:')).length ?? 0
    return [
      ...[held ?? [], ...relay].flatMap((files) =>
        files.filter((file, at) => (at < 3 ? file !== '/dev/null' : !/^(socket|anon_inode):/.test(file))),
      ),
      ...(sockets > socketsOfPid1 ? [`${sockets} sockets in PID 1`] : []),
    ].join('\n')
  },
  (text) => (text === '' ? null : `of somebody else’s: ${text.replaceAll('\n', ', ')}`),
)

export const startProbes: readonly Probe[] = [
  {
    id: 'environment.start',
    number: 121,
    group: 'environment',
    protects: 'Whatever a daemon has when it starts a sandbox, nothing of it is passed on.',
    control: 'launcher',
    isAlone: true,
    // The launcher of both tells of its start in one file.
    isApart: true,
    // Of keys the filter lets nobody ask: without it the launcher alone stands before them.
    provoke: both(both(withoutFilter, withoutOtherFilters), (_plan, { launchers }) => ({
      launcher: launchers.spoilt,
    })),
    trial: ({ canaries: { word, folder }, driver, isRoot, launchers }) =>
      driver === 'docker'
        ? {
            expected: 'no variable, open file, key or group of the daemon’s',
            attempts: [
              stops(['search-key', word], ['ENOKEY', 'EACCES', 'ENOSYS', 'EPERM']),
              finds(['environment'], (text) => (text.includes(word) ? 'variables of the daemon’s' : null)),
              foreignGroups,
              ...(isRoot ? [ownVariables, passedToPid1(folder)] : []),
            ],
            note: 'the engine starts it',
          }
        : {
            expected: 'no variable, open file, key, mask, signal, session or group of the launcher’s',
            attempts: [
              stops(['search-key', word], ['ENOKEY', 'EACCES', 'ENOSYS', 'EPERM']),
              finds(['session'], (text) => (Number(text) > 1 ? null : `session ${text}`)),
              finds(['text', '/proc/self/status'], otherStart, 'umask and blocked signals of the server'),
              ownStart(launchers.spoilt),
              ...passedOn(word, folder),
              ...(isRoot ? [ownVariables, ownGroups] : []),
            ],
            outside: [
              finds(['environment'], (text) => (text.includes(word) ? 'variables of the daemon’s' : null)),
            ],
          },
  },
  {
    id: 'files.staged',
    number: 132,
    group: 'files',
    protects: 'What a daemon of root mounts for a sandbox shows nowhere else on the machine.',
    control: 'staging',
    isAlone: true,
    isApart: true,
    provoke: (_plan, { launchers }) => ({ launcher: launchers.spoilt }),
    trial: ({ driver, isRoot }) => {
      const expected = 'no mount that is shared'
      if (driver === 'docker')
        return inapplicable(expected, 'an engine mounts, and nothing is staged for it', 'under bubblewrap')
      if (!isRoot)
        return inapplicable(
          expected,
          'an ordinary user mounts nothing outside of the sandbox’s own namespaces',
          'to a daemon of root',
        )
      return {
        expected,
        attempts: [ownMounts],
        outside: [finds(['text', '/proc/self/mountinfo'], sharedMounts, 'mounts of this machine')],
      }
    },
  },
  {
    id: 'descriptors.held',
    number: 122,
    group: 'descriptors',
    protects: 'The end of what a server writes is its own to make: nobody beside it holds its streams open.',
    control: 'stream-ends',
    isAlone: true,
    trial: ({ driver, isRoot }) =>
      driver === 'docker'
        ? {
            expected: 'an end of stderr as soon as the container ends',
            attempts: [
              finds(['stay'], () => null, 'refusing every end'),
              seen(
                'stderr of a container that was ended',
                async (program) => {
                  program.kill()
                  return endOf(program)
                },
                amiss,
              ),
            ],
            outside: [streamThatNobodyClosed],
            note: 'the engine holds it until then',
          }
        : {
            expected: 'an end of stderr as soon as the server closes it',
            attempts: [
              ...(isRoot ? [ownStreams, ownFiles] : []),
              finds(['let-go'], () => null),
              seen('stderr, closed by the server', endOf, amiss),
            ],
            outside: [streamThatNobodyClosed],
          },
  },
]
