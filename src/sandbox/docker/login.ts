// Whom a registry is to know the puller as, as the docker CLI remembers it: in config.json, or with a program that keeps secrets.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { answerOf } from '../../lib/exec.ts'
import { isMissing } from '../../lib/missing.ts'
import { parseJson } from '../../lib/parse-json.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** What the engine passes on to the registry. */
export type Login =
  | { readonly serveraddress: string; readonly username: string; readonly password: string }
  | { readonly serveraddress: string; readonly identitytoken: string }

/** The part of config.json that is about logins. */
interface Remembered {
  readonly auths?: Readonly<Record<string, { readonly auth?: string; readonly identitytoken?: string }>>
  readonly credHelpers?: Readonly<Record<string, string>>
  readonly credsStore?: string
}

const hub = 'https://index.docker.io/v1/'
const helperMs = 30_000
/** What a helper says, and ends with status 1, where it knows nobody. */
const nobody = 'credentials not found in native keychain'

/**
 * Returns the login for an image's registry, or null where none is remembered. Looked for as the docker CLI does: a
 * registry's own helper, else the helper for all, else the file.
 *
 * Throws ERR_REGISTRY_LOGIN where the file or the helper can't be understood; no message holds a secret.
 */
export const loginFor = async (image: string, environment: Environment): Promise<Login | null> => {
  const folder = environment['DOCKER_CONFIG'] || join(environment['HOME'] ?? '/nonexistent', '.docker')
  const path = join(folder, 'config.json')
  const { auths = {}, credHelpers = {}, credsStore = '' } = await remembered(path)
  const registry = registryOf(image)
  const helper = (Object.hasOwn(credHelpers, registry) && credHelpers[registry]) || credsStore
  if (helper !== '') return await askHelper(helper, registry, environment)
  const found = Object.entries(auths).find(([address]) => hostIn(address) === hostIn(registry))?.[1]
  if (found === undefined) return null
  const { auth = '', identitytoken = '' } = found
  if (identitytoken !== '') return { serveraddress: registry, identitytoken }
  if (auth === '') return null
  const [, username, password] = /^([^:]+):(.*)$/s.exec(Buffer.from(auth, 'base64').toString()) ?? []
  if (username === undefined || password === undefined)
    throw refused(`${path} has no NAME:PASSWORD in base64 for ${registry}`, 'log in again with docker login')
  return { serveraddress: registry, username, password: password.replace(/\0+$/, '') }
}

/** The registry of a name: what stands before its first slash, where that looks like a host; Docker's own elsewhere. */
export const registryOf = (image: string): string => {
  const [first = '', ...rest] = image.split('/')
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  return !isHost || hostIn(first) === 'docker.io' ? hub : first
}

const hostIn = (address: string): string =>
  address
    .replace(/^https?:\/\//, '')
    .replace(/\/.*$/, '')
    .replace(/^(?:index|registry-1)\.docker\.io$/, 'docker.io')

const remembered = async (path: string): Promise<Remembered> => {
  try {
    const parsed: unknown = parseJson(await readFile(path, 'utf8'))
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed
  } catch (error) {
    if (isMissing(error)) return {}
    if (!(error instanceof SyntaxError))
      throw refused(`${path} cannot be read`, 'mend its mode, or set DOCKER_CONFIG')
  }
  throw refused(`${path} is no JSON object`, 'mend it, or log in again with docker login')
}

// It gets the registry on stdin and answers on stdout; nothing of the secret is in an argument or a variable.
const askHelper = async (
  helper: string,
  registry: string,
  environment: Environment,
): Promise<Login | null> => {
  if (!/^[A-Za-z0-9][\w.-]*$/.test(helper))
    throw refused(
      `${JSON.stringify(helper.slice(0, 100))} is no name of a helper`,
      'write the NAME of docker-credential-NAME',
    )
  const program = `docker-credential-${helper}`
  const { said, problem } = await answerOf(program, ['get'], {
    input: `${registry}\n`,
    env: environment,
    ms: helperMs,
  })
  if (said.trim() === nobody) return null
  const mend = 'try it by hand: echo REGISTRY | '
  if (problem !== null)
    throw refused(`${program} gave no login for ${registry}: ${problem}`, `${mend}${program} get`)
  try {
    const { Username, Secret } = parseJson(said) as { readonly Username: unknown; readonly Secret: unknown }
    if (typeof Username === 'string' && typeof Secret === 'string')
      return Username === '<token>'
        ? { serveraddress: registry, identitytoken: Secret }
        : { serveraddress: registry, username: Username, password: Secret }
  } catch {
    // said below, without what it said
  }
  throw refused(`${program} answered with no Username and Secret for ${registry}`, `${mend}${program} get`)
}

const refused = (problem: string, mend: string): SallyportError =>
  new SallyportError('ERR_REGISTRY_LOGIN', `${problem}; ${mend}`)
