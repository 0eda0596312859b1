// What a server finds in its environment: built from empty, every variable with where it came from.
import { SallyportError } from '../errors.ts'
import { refusedFamily } from '../lib/environment-families.ts'
import { baseVariables, ownNames } from '../lib/own-variables.ts'
import type { ProfileSettings, ServerSettings } from '../schema/settings.ts'
import type { Variable } from './spec.ts'

/** What a server's environment is made of. */
export interface EnvironmentRequest {
  readonly server: Pick<ServerSettings, 'name' | 'env' | 'envOverride'>
  readonly profile: Pick<ProfileSettings, 'name' | 'environment'>
  /** The daemon's own environment, of which only the names in `pass` are read */
  readonly daemon: Readonly<Record<string, string | undefined>>
  /** What the supervisor sets itself, whatever the family; nobody else may set the same */
  readonly supplied: Readonly<Record<string, string>>
}

/** A variable that came through although its family is refused, and the operator's word why. */
export interface OverriddenVariable {
  readonly name: string
  readonly family: string
  readonly reason: string
}

export interface Environment {
  readonly variables: Readonly<Record<string, Variable>>
  readonly overrides: readonly OverriddenVariable[]
}

/** The longest `NAME=value` and the most of all names and values together, bytes; Linux takes 128 KiB with a NUL, and 2 MiB. */
const variableLimitBytes = 131_071
const totalLimitBytes = 262_144

/**
 * Returns the whole environment of a server. Nothing is inherited.
 *
 * 1. start from empty, and set the base with the sandbox's own values
 * 2. copy the names in the profile's `pass` from the daemon, where the daemon has them
 * 3. set the profile's `set`
 * 4. set the server's `env`
 * 5. refuse, in all three, a name of a family that loads code or carries secrets, whatever its case, unless the
 *    profile (for `pass` and `set`) or the server (for `env`) overrides that very name with a reason, which is kept
 * 6. set what the supervisor supplies, which is of no refused family by its own word; a name that stands already is refused
 * 7. refuse what is no name, what holds a NUL, and what is too large
 *
 * Throws ERR_ENVIRONMENT_REFUSED, which names the variable and where it stands, never its value.
 */
export const buildEnvironment = ({ server, profile, daemon, supplied }: EnvironmentRequest): Environment => {
  const { pass, set, override } = profile.environment
  const inProfile = `profile ${profile.name}`
  const layers: readonly Layer[] = [
    { origin: 'pass', where: inProfile, overrides: override, entries: passed(pass, daemon, inProfile) },
    { origin: 'profile', where: inProfile, overrides: override, entries: Object.entries(set) },
    {
      origin: 'server',
      where: `server ${server.name}`,
      overrides: server.envOverride,
      entries: Object.entries(server.env),
    },
  ]
  const variables = new Map<string, Variable>()
  const overrides = new Map<string, OverriddenVariable>()
  for (const [name, value] of Object.entries(baseVariables)) variables.set(name, { value, origin: 'base' })
  for (const { origin, where, overrides: allowed, entries } of layers)
    for (const [name, value] of entries) {
      judgeName(name, where)
      const overridden = judgeFamily(name, where, allowed)
      if (overridden !== null) overrides.set(name, overridden)
      // A name is judged even where the daemon lacks it today: tomorrow it may have it.
      if (value === undefined) continue
      judgeValue(name, value, where)
      variables.set(name, { value, origin })
    }
  for (const [name, value] of Object.entries(supplied)) {
    const where = `the supervisor, for server ${server.name}`
    judgeName(name, where)
    judgeValue(name, value, where)
    if (variables.has(name))
      throw refused(
        name,
        where,
        'is set already',
        'give the credential another name, or leave the variable out',
      )
    variables.set(name, { value, origin: 'supervisor' })
  }
  judgeTotal(variables, server.name)
  return { variables: Object.fromEntries(variables), overrides: [...overrides.values()] }
}

interface Layer {
  readonly origin: Variable['origin']
  readonly where: string
  /** Names of refused families that this layer lets through, with the reason */
  readonly overrides: Readonly<Record<string, string>>
  readonly entries: readonly (readonly [string, string | undefined])[]
}

const passed = (
  names: readonly string[],
  daemon: EnvironmentRequest['daemon'],
  where: string,
): Layer['entries'] => {
  const own = names.find((name) => ownNames.has(name))
  if (own !== undefined)
    throw refused(
      own,
      where,
      'cannot be passed on, since the sandbox has its own',
      'remove it from pass, or set it',
    )
  return names.map((name) => [name, Object.hasOwn(daemon, name) ? daemon[name] : undefined])
}

const judgeName = (name: string, where: string): void => {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name))
    throw refused(
      name,
      where,
      'is no variable name',
      'use letters, digits and underscores, not a digit first',
    )
}

const judgeValue = (name: string, value: string, where: string): void => {
  if (value.includes('\0')) throw refused(name, where, 'has a value with a NUL byte', 'remove it')
  const bytes = Buffer.byteLength(`${name}=${value}`)
  if (bytes > variableLimitBytes)
    throw refused(
      name,
      where,
      `has ${bytes} bytes with its name, ${variableLimitBytes} is the most`,
      'give it to the server as a file',
    )
}

const judgeFamily = (
  name: string,
  where: string,
  allowed: Readonly<Record<string, string>>,
): OverriddenVariable | null => {
  const family = refusedFamily(name)
  if (family === null) return null
  const reason = Object.hasOwn(allowed, name) ? allowed[name] : undefined
  if (reason === undefined || reason.trim() === '')
    throw refused(
      name,
      where,
      `is refused (${family})`,
      `remove it, or give the reason for it in the override`,
    )
  return { name, family, reason }
}

const judgeTotal = (variables: ReadonlyMap<string, Variable>, server: string): void => {
  let bytes = 0
  for (const [name, { value }] of variables) bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 2
  if (bytes > totalLimitBytes)
    throw new SallyportError(
      'ERR_ENVIRONMENT_REFUSED',
      `environment of server ${server} has ${bytes} bytes, ${totalLimitBytes} is the most; give large values as files`,
      { server, bytes },
    )
}

const refused = (name: string, where: string, what: string, mend: string): SallyportError => {
  const shown = JSON.stringify(name.slice(0, 80))
  return new SallyportError('ERR_ENVIRONMENT_REFUSED', `variable ${shown} of ${where} ${what}; ${mend}`, {
    variable: name.slice(0, 80),
    where,
  })
}
