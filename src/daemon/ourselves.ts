// The daemon's own user, as whoever starts servers without being asked.
import type { Caller } from '../supervisor/ports.ts'

/** The principal of what starts by itself: the daemon's own user. */
export function ourselves(): Caller {
  const [uid, gid] = [process.geteuid?.() ?? -1, process.getegid?.() ?? -1]
  return {
    principal: { kind: 'uid', id: String(uid), attributes: { uid, gid, pid: process.pid } },
    role: 'operator',
  }
}
