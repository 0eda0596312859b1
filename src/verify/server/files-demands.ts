// The demands on what a server's processes have mounted and open, against the plan of their sandbox.
import { isWithin } from '../../lib/path-overlap.ts'
import { mountsOf } from '../../sandbox/spec.ts'
import { type Demand, judged, ownCount, type Sight } from './look.ts'
import { isRead, type SeenProcess } from './processes.ts'

interface MountLine {
  readonly id: number
  readonly target: string
  readonly options: readonly string[]
  readonly type: string
}

/** What every sandbox has beside the plan's own mounts: the root, and what is made in it. */
const always = ['/', '/proc', '/dev', '/tmp', '/home/user', '/sallyport']

/** Files of its own making that an engine mounts, whatever it is asked for. */
const ofEngine = ['/etc/resolv.conf', '/etc/hostname', '/etc/hosts']

const mountsIn = (text: string): readonly MountLine[] =>
  text
    .trim()
    .split('\n')
    .map((line) => {
      const [head = '', tail = ''] = line.split(' - ')
      const [id = '', , , , target = '', options = ''] = head.split(' ')
      return {
        id: Number(id),
        target: unescaped(target),
        options: options.split(','),
        type: tail.split(' ')[0] ?? '',
      }
    })

const unescaped = (path: string): string =>
  path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/** Mounts that are not below a later one: the kernel tells them in the order in which they were made. */
const reachable = (lines: readonly MountLine[]): readonly MountLine[] =>
  lines.filter(({ target }, index) => !lines.slice(index + 1).some((later) => isWithin(target, later.target)))

// An engine mounts what it is asked for without saying so, and covers what of /sys is the host's with a folder of nothing.
const isOfEngine = ({ target, options, type }: MountLine): boolean =>
  ofEngine.includes(target) || (target === '/sys' && type === 'tmpfs' && options.includes('ro'))

/** What of the table is not as the plan has it. */
const unplanned = (all: readonly MountLine[], { spec, driver }: Sight): readonly string[] => {
  const isContainer = driver === 'docker'
  const lines = reachable(all)
  const planned = new Map(mountsOf(spec).map(({ target, access }) => [target, access]))
  const files = new Set(spec.files.map(({ target }) => target))
  const missing = [...planned.keys()].filter((target) => !lines.some((line) => line.target === target))
  const wrong = lines.flatMap((line) => {
    const { target, options } = line
    const access = planned.get(target)
    if (access === 'read' && !options.includes('ro')) return [`${target} can be written`]
    if (access !== undefined || files.has(target)) return []
    const isOfSandbox = always.some(
      (path) => target === path || (path !== '/' && target.startsWith(`${path}/`)),
    )
    return isOfSandbox || (isContainer && isOfEngine(line)) ? [] : [`${target} was not planned`]
  })
  // An engine says it only of what is in memory; for the rest no_new_privs stands, and one uid that is all there is.
  const isBare = ({ options, type }: MountLine): boolean =>
    !options.includes('nosuid') && (!isContainer || (type === 'tmpfs' && options.includes('rw')))
  const bare = lines.filter(isBare).map(({ target }) => `${target} is not nosuid`)
  return [...missing.map((target) => `${target} is missing`), ...wrong, ...bare]
}

const isOfPath = ({ leadsTo }: { readonly leadsTo: string }): boolean =>
  leadsTo.startsWith('/') && !leadsTo.startsWith('/memfd:')

const outsideOf = (process: SeenProcess, lines: readonly MountLine[]): readonly string[] => {
  const ids = new Set(lines.map(({ id }) => id))
  const descriptors = isRead(process.descriptors) ? process.descriptors : []
  return descriptors
    .filter((descriptor) => isOfPath(descriptor) && !ids.has(descriptor.mount))
    .map(({ fd, leadsTo }) => `${fd} ${leadsTo}`)
}

export const fileDemands: readonly Demand[] = [
  {
    id: 'process.mounts',
    protects:
      'Every process sees the mounts that were planned, read-only where they were planned so, and no other.',
    expected: ({ spec }) => `${mountsOf(spec).length} mounts of the host, as the plan has them`,
    amiss: (process, sight) =>
      judged('mounts', process.mounts, (text) => {
        const found = unplanned(mountsIn(text), sight)
        return found.length === 0 ? null : found.slice(0, 5).join(', ')
      }),
    tells: ({ mounts }) =>
      isRead(mounts)
        ? mountsIn(mounts)
            .filter(({ target }) => !/^\/(proc|dev)(\/|$)/.test(target))
            .map(({ target, options }) => `${target} ${options.includes('ro') ? 'ro' : 'rw'}`)
            .join(', ')
        : '',
  },
  {
    id: 'process.descriptors',
    protects:
      'Nothing is open that lies outside of the sandbox’s own mounts, and the server’s streams are no files.',
    expected: () => 'sockets and pipes at the server’s 0, 1 and 2, and no path of another mount namespace',
    amiss(process, sight) {
      const { descriptors, mounts } = process
      // Sallyport's own two hold the host's null device where others have streams.
      const index = sight.processes.indexOf(process)
      const isOwn = index < ownCount(sight)
      const isNull = (line: string): boolean => isOwn && /^[012] \/dev\/null$/.test(line)
      if (!isRead(mounts)) return judged('mounts', mounts, () => null)
      return judged('descriptors', descriptors, (open) => {
        const outside = outsideOf(process, mountsIn(mounts)).filter((line) => !isNull(line))
        if (outside.length > 0) return `open outside of the sandbox: ${outside.slice(0, 5).join(', ')}`
        // A server may give its own children streams as it likes, of what lies in its sandbox.
        const streams = open.filter(({ fd }) => fd <= 2 && index <= ownCount(sight))
        const files = streams.filter(
          ({ fd, leadsTo }) => !/^(socket|pipe):/.test(leadsTo) && !isNull(`${fd} ${leadsTo}`),
        )
        return files.length === 0
          ? null
          : `streams that are files: ${files.map(({ fd, leadsTo }) => `${fd} ${leadsTo}`).join(', ')}`
      })
    },
    tells: ({ descriptors }) =>
      isRead(descriptors)
        ? descriptors
            .slice(0, 40)
            .map(({ fd, leadsTo }) => `${fd} ${leadsTo}`)
            .join(', ')
        : '',
  },
]
