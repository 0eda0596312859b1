// Which code a host may have launched: what it may read itself.
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Caller } from '../../supervisor/ports.ts'
import { notLaunched } from '../entries.ts'

/**
 * Code that a host names must be code that any user of the machine may read, or the sandbox would show the host files
 * that only the daemon can open. Of what lies in a closed folder a host does not even learn whether it is there.
 */
export async function expectReadable(server: string, path: string, caller: Caller): Promise<void> {
  if (!isForeign(caller)) return
  await expectOpen(server, path, path)
  await expectOpen(server, path, await realpath(path).catch(() => path)) // where links lead
}

/** From the root on, and no further than the first folder that is closed. */
async function expectOpen(server: string, path: string, way: string): Promise<void> {
  const steps = [way]
  for (let at = way; at !== dirname(at); at = dirname(at)) steps.unshift(dirname(at))
  for (const at of steps) {
    const bits = at === way ? 0o5 : 0o1
    const found = await stat(at).catch(() => null)
    if (found === null || (found.mode & bits) !== bits)
      throw notLaunched(
        server,
        `${path} is not a folder that every user may read`,
        `put the code in one that is open to all, as /opt and /srv mostly are, or open ${at} if it may be`,
      )
  }
}

/** Whether it is a host that may not read what the daemon may. */
export const isForeign = ({ principal, role }: Caller): boolean =>
  role !== 'operator' && principal.attributes.uid !== process.geteuid?.()
