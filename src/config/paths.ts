// Where the daemon keeps its sockets and its state, the same places in the same order as the shim looks.
import { isAbsolute, join, resolve } from 'node:path'
import { SallyportError } from '../errors.ts'
import type { Host } from './host.ts'
import { maxSocketPath } from '../lib/socket-path.ts'
import { throughRootLinks } from '../lib/root-links.ts'
import { isThere } from './is-there.ts'

/** Longest name of a socket below the runtime directory. */
const longestSocket = 'operator/operator.sock'

/**
 * The runtime directory: the flag, $SALLYPORT_RUNTIME_DIR, /run/sallyport for root, /run/user/<uid>/sallyport where
 * that user folder exists, else ~/.local/state/sallyport/run. Absolute, and where links of root’s own lead, such as /home on
 * some systems; nothing is made. ERR_USAGE or
 * ERR_CONFIG_VARIABLE where it is relative, a variable with `..` in it, or so long that the kernel could not take the path of a socket in it.
 */
export async function runtimeDirectory(flag: string | undefined, host: Host): Promise<string> {
  const named = fromFlag(flag, '--runtime') ?? fromVariable(host, 'SALLYPORT_RUNTIME_DIR')
  if (named !== null) return usable(named.path, named.by)
  if (host.uid === 0) return usable('/run/sallyport', 'for root')
  const user = `/run/user/${host.uid}`
  if (await isThere(user)) return usable(join(user, 'sallyport'), user)
  return usable(join(host.home, '.local/state/sallyport/run'), 'the home')
}

/** The state directory: the flag, $SALLYPORT_STATE_DIR, /var/lib/sallyport for root, else ~/.local/state/sallyport; as that. */
export async function stateDirectory(flag: string | undefined, host: Host): Promise<string> {
  const named = fromFlag(flag, '--state') ?? fromVariable(host, 'SALLYPORT_STATE_DIR')
  const usual = host.uid === 0 ? '/var/lib/sallyport' : join(host.home, '.local/state/sallyport')
  return throughRootLinks(named?.path ?? usual)
}

interface Named {
  readonly path: string
  readonly by: string
}

/** A flag is a person's word, from the folder they are in; an empty one is a slip in a script. */
function fromFlag(flag: string | undefined, by: string): Named | null {
  if (flag === undefined) return null
  if (flag === '') throw refused('ERR_USAGE', by, '""', 'a path')
  return { path: resolve(flag), by }
}

/**
 * A variable is read by programs in other folders too, so it must not depend on one; nor on whether `..` leads out of a link or
 * out of what that leads to, which the kernel and a reader of paths take differently. An empty one is unset.
 */
function fromVariable({ env }: Host, name: string): Named | null {
  const said = env[name]
  if (said === undefined || said === '') return null
  if (!isAbsolute(said) || said.split('/').includes('..'))
    throw refused('ERR_CONFIG_VARIABLE', `$${name}`, JSON.stringify(said), 'an absolute path without ..')
  return { path: resolve(said), by: `$${name}` }
}

// Both are connected to: what is named by the shim, where that leads by what listens there.
const usable = async (path: string, by: string): Promise<string> =>
  short(await throughRootLinks(short(path, by)), by)

function short(path: string, by: string): string {
  const bytes = Buffer.byteLength(join(path, longestSocket))
  if (bytes <= maxSocketPath) return path
  const room = maxSocketPath - Buffer.byteLength(join('/', longestSocket))
  throw new SallyportError(
    by === '--runtime' ? 'ERR_USAGE' : 'ERR_CONFIG_VARIABLE',
    `${by}: got ${path} (${Buffer.byteLength(path)} bytes), expected at most ${room} bytes, since a socket’s path has at most ${maxSocketPath}; name a shorter one with --runtime`,
    { path, bytes: Buffer.byteLength(path), limit: room },
  )
}

function refused(
  code: 'ERR_USAGE' | 'ERR_CONFIG_VARIABLE',
  by: string,
  got: string,
  expected: string,
): SallyportError {
  return new SallyportError(code, `${by}: got ${got}, expected ${expected}; mend it or leave it out`, {
    got,
    expected,
  })
}
