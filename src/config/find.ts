// Which configuration files there are for this daemon, highest scope first.
import { lstat } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { SallyportError } from '../errors.ts'
import { errnoOf, isMissing } from '../lib/missing.ts'
import type { Scope } from '../schema/settings.ts'
import type { Host } from './host.ts'

/** Folder of the enterprise file and of system-wide profiles. */
export const enterpriseFolder = '/etc/sallyport'

const names = ['sallyport.yaml', 'sallyport.yml', 'sallyport.json'] as const

export interface FoundFile {
  readonly scope: Exclude<Scope, 'project'>
  readonly path: string
  /** How it was named, for messages: `--config`, `$SALLYPORT_CONFIG`, or the folder it lies in */
  readonly by: string
}

export interface FindOptions extends Host {
  /** The file that --config names; it stands in the user file's place */
  readonly path?: string
  /** Folder of the enterprise file; /etc/sallyport unless a test says otherwise */
  readonly enterprise?: string
}

/** Finds the enterprise file, then the named file or else the user's. ERR_CONFIG_NOT_FOUND says where it looked. */
export async function findConfig(options: FindOptions): Promise<readonly FoundFile[]> {
  const enterprise = await inFolder(options.enterprise ?? enterpriseFolder, 'enterprise')
  const named = namedFile(options)
  const lower = named ?? (await inFolder(userFolder(options), 'user'))
  const found = [enterprise, lower].filter((file) => file !== null)
  if (found.length > 0) return found
  const looked = [
    '--config',
    '$SALLYPORT_CONFIG',
    userFolder(options),
    options.enterprise ?? enterpriseFolder,
  ]
  throw new SallyportError(
    'ERR_CONFIG_NOT_FOUND',
    `no configuration file: looked at ${looked.join(', ')} for ${names.join(', ')}; write one or name it with --config`,
    { looked },
  )
}

/** Folder of the user's configuration: $XDG_CONFIG_HOME/sallyport where that is absolute, else ~/.config/sallyport. */
export function userFolder({ env, home }: Pick<Host, 'env' | 'home'>): string {
  const xdg = env['XDG_CONFIG_HOME']
  return join(xdg !== undefined && isAbsolute(xdg) ? xdg : join(home, '.config'), 'sallyport')
}

/** Folder of the file that --config or $SALLYPORT_CONFIG names, or null. */
export function namedFolder(options: FindOptions): string | null {
  const named = namedFile(options)
  return named === null ? null : dirname(named.path)
}

function namedFile({ path, env }: FindOptions): FoundFile | null {
  if (path !== undefined) return { scope: 'file', path: resolve(path), by: '--config' }
  const variable = env['SALLYPORT_CONFIG']
  if (variable === undefined || variable === '') return null
  if (!isAbsolute(variable))
    throw new SallyportError(
      'ERR_CONFIG_VARIABLE',
      `$SALLYPORT_CONFIG: got ${JSON.stringify(variable)}, expected an absolute path`,
      { got: variable, expected: 'an absolute path' },
    )
  return { scope: 'file', path: variable, by: '$SALLYPORT_CONFIG' }
}

async function inFolder(folder: string, scope: FoundFile['scope']): Promise<FoundFile | null> {
  const there: string[] = []
  for (const name of names) if (await exists(join(folder, name))) there.push(join(folder, name))
  const [path, second] = there
  if (path === undefined) return null
  if (second !== undefined)
    throw new SallyportError(
      'ERR_CONFIG_INVALID',
      `${folder}: got ${there.length} configuration files (${there.join(', ')}), expected one; remove the others`,
      { file: folder, files: there },
    )
  return { scope, path, by: folder }
}

/** A link that leads nowhere exists; a folder that we may not enter is an error, not an absence. */
async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    const code = errnoOf(error)
    throw new SallyportError(
      'ERR_CONFIG_UNSAFE',
      `${path}: cannot be looked at (${String(code)}), so nobody knows what it decides; make its folder readable to uid ${process.getuid?.()}`,
      { file: path, got: String(code) },
      { cause: error },
    )
  }
}
