// A project's .sallyport.yaml: what it takes away from the configured servers. It can grant nothing.
import { basename, isAbsolute, join } from 'node:path'
import { SallyportError } from '../errors.ts'
import { errnoOf, isMissing } from '../lib/missing.ts'
import type { Problem } from '../schema/problem.ts'
import type { ServerSettings, Settings } from '../schema/settings.ts'
import type { Project } from '../schema/types.gen.ts'
import { schemaOf, validate } from '../schema/validate.ts'
import { parseDocument, type Document } from './document.ts'
import { freeze } from './freeze.ts'
import { readTrusted } from './read.ts'
import { refuse, type Issue } from './refusal.ts'
import { warningsOfRules } from './rule-warnings.ts'
import { checkRules, rulesOf } from './rules.ts'

const fileName = '.sallyport.yaml'
/** Longest, bytes: it is a host's, and everybody waits while it is read and where its rules are asked */
const mostBytes = 32_768

/**
 * Narrows settings by the project file of a folder; without such a file they stay as they are. `owners` are the uids
 * beside root that may own it: the daemon's, and that of the host that named the folder. Anything but a denial, a call
 * to ask for or a server switched off is refused (ERR_CONFIG_SCOPE).
 */
export async function narrowByProject(
  settings: Settings,
  folder: string,
  owners: readonly number[],
): Promise<Settings> {
  return (await projectNarrowing(folder, owners))(settings)
}

/** The same for any settings: the project's file is read once, and takes away from whatever holds later, too. */
export async function projectNarrowing(
  folder: string,
  owners: readonly number[],
): Promise<(settings: Settings) => Settings> {
  const document = await readProject(folder, owners)
  if (document === null) return (settings) => settings
  const project = validateProject(document)
  return (settings) => narrowed(settings, project, document)
}

function narrowed(settings: Settings, project: Project, document: Document): Settings {
  const known = new Map(
    [...settings.servers].map(([name, server]) => [name, narrowServer(server, project, document)]),
  )
  const strangers = Object.keys(project.servers).filter((name) => !settings.servers.has(name))
  const rules = rulesOf({ document, config: project })
  return freeze({
    ...settings,
    sources: [...settings.sources, { scope: 'project', path: document.path }],
    servers: known,
    rules: [...rules, ...settings.rules],
    warnings: [
      ...settings.warnings,
      ...warningsOfRules(rules),
      ...strangers.map((name) => `${document.path} narrows server ${name}, which is not configured`),
    ],
  })
}

/**
 * The folder is a host's word, and the daemon may be able to read more than the host: so the file itself may be no link,
 * neither symbolic nor hard, to something else. Judged on what was read, which no rename in between can change.
 */
async function readProject(folder: string, owners: readonly number[]): Promise<Document | null> {
  if (!isAbsolute(folder)) {
    const got = JSON.stringify(folder)
    throw new SallyportError('ERR_INVALID_PARAMS', `project: got ${got}, expected an absolute path`, { got })
  }
  const path = join(folder, fileName)
  try {
    const file = await readTrusted(path, owners, mostBytes)
    if (basename(file.path) !== fileName || file.links > 1)
      throw new SallyportError(
        'ERR_CONFIG_UNSAFE',
        `${path}: got a link, expected a file of its own; replace it by a copy`,
        { file: path, got: 'a link' },
      )
    return parseDocument(path, file.text)
  } catch (error) {
    if (isMissing(error)) return null
    const code = errnoOf(error)
    if (error instanceof SallyportError || code === null) throw error
    throw new SallyportError(
      'ERR_CONFIG_UNSAFE',
      `${path}: cannot be read (${code}), so nobody knows what it denies; make it readable to the daemon`,
      { file: path, got: code },
      { cause: error },
    )
  }
}

function validateProject(document: Document): Project {
  const validated = validate('project', document.value)
  if (validated.ok) {
    refuse(checkRules({ document, config: validated.value }))
    return validated.value
  }
  refuse(validated.problems.map((problem): Issue => classify(problem, document)))
  throw new SallyportError('ERR_INTERNAL', `${document.path}: refused without a reason`)
}

/** A key that the operator's file could have, or a value that would grant, is out of scope; the rest is plainly wrong. */
function classify(problem: Problem, document: Document): Issue {
  const grants =
    /^servers\.[^.]*\.enabled$|^rules\[\d+\]\.action$/.test(problem.path) &&
    /^(true|"allow")$/.test(problem.got)
  const known = problem.kind === 'unknown-key' && knownToConfig(problem)
  if (!grants && !known) return { code: 'ERR_CONFIG_INVALID', document, problem }
  return {
    code: 'ERR_CONFIG_SCOPE',
    document,
    problem: {
      ...problem,
      expected: 'tools.deny, rules with deny or ask, or enabled: false, since a project may only narrow',
      mend: 'move it to the operator’s file',
    },
  }
}

function knownToConfig({ at }: Problem): boolean {
  const key = at.at(-1)
  const config = schemaOf('config')
  const server = (config['$defs'] as Record<string, { properties?: object }>)['server']
  const tools = (config['$defs'] as Record<string, { properties?: object }>)['tools']
  const holder =
    at.length === 1
      ? (config['properties'] as object)
      : at.length === 3
        ? server?.properties
        : tools?.properties
  return typeof key === 'string' && Object.hasOwn(holder ?? {}, key)
}

function narrowServer(server: ServerSettings, project: Project, { path }: Document): ServerSettings {
  if (!Object.hasOwn(project.servers, server.name)) return server
  const said = project.servers[server.name]
  if (said === undefined) return server
  const switchedOff = server.enabled && said.enabled === false
  return {
    ...server,
    enabled: server.enabled && !switchedOff,
    disabledReason: switchedOff ? `server ${server.name} is disabled by ${path}` : server.disabledReason,
    // An index into the list of both counts from the first of the operator's.
    file: said.tools.deny.length === 0 ? server.file : `${server.file} + ${basename(path)}`,
    tools: { ...server.tools, deny: [...new Set([...server.tools.deny, ...said.tools.deny])] },
  }
}
