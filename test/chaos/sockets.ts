// Where the sockets of a process lead, for whoever has to find out why there are too many.
import { spawnSync } from 'node:child_process'

interface UnixSocket {
  /** `LISTEN`, or something of those that do not */
  readonly state: string
  readonly inode: string
  readonly peer: string
  /** Where it is bound; `*` for nowhere */
  readonly path: string
  /** `("NAME",pid=N,fd=N)`, once for each descriptor; empty where no process has it any more */
  readonly users: string
}

/** In words, one for each descriptor that leads to a socket, lowest first; says so where `ss` can't tell. */
export function socketsOf(pid: number): readonly string[] {
  const { status, stdout } = spawnSync('ss', ['-xapH'], { encoding: 'utf8', maxBuffer: 1 << 26 })
  if (status !== 0) return ['nobody knows where they lead: there is no ss (iproute2) here']
  const all = stdout.split('\n').flatMap(parse)
  const at = new Map(all.map((socket) => [socket.inode, socket]))
  return all
    .flatMap((socket) => descriptorsOf(socket, pid).map((fd) => ({ fd, socket })))
    .toSorted((a, b) => a.fd - b.fd)
    .map(({ fd, socket }) => `fd ${fd} ${namedIn(socket)} to ${peerOf(socket, at.get(socket.peer))}`)
}

function parse(line: string): readonly UnixSocket[] {
  const match = /^\S+\s+(\S+)\s+\d+\s+\d+\s+(\S+) (\d+)\s+\S+ (\d+)\s*(?:users:\((.*)\))?/.exec(line)
  if (match === null) return []
  const [, state = '', path = '', inode = '', peer = '', users = ''] = match
  return [{ state, path, inode, peer, users }]
}

const descriptorsOf = ({ users }: UnixSocket, pid: number): readonly number[] =>
  [...users.matchAll(/pid=(\d+),fd=(\d+)/g)]
    .filter(([, of]) => Number(of) === pid)
    .map(([, , fd]) => Number(fd))

const namedIn = ({ path, inode }: UnixSocket): string => (path === '*' ? inode : `${inode} at ${path}`)

function peerOf({ state, peer }: UnixSocket, other: UnixSocket | undefined): string {
  if (state === 'LISTEN') return 'whoever connects'
  if (other === undefined) return `what is closed (${peer})`
  return `${namedIn(other)} of ${other.users || 'nobody yet'}`
}
