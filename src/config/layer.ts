// One configuration file, validated on its own before it meets the others.
import { dirname } from 'node:path'
import type { Problem } from '../schema/problem.ts'
import type { Scope } from '../schema/settings.ts'
import type { Config } from '../schema/types.gen.ts'
import { validate } from '../schema/validate.ts'
import type { Document } from './document.ts'
import { issue, refuse, type Issue } from './refusal.ts'
import { SallyportError } from '../errors.ts'

export interface Layer {
  readonly scope: Exclude<Scope, 'project'>
  readonly document: Document
  /** Folder from which the file's relative paths go */
  readonly directory: string
  /** With the schema's defaults where the file says nothing */
  readonly config: Config
  /** Top-level keys that the file itself states */
  readonly stated: ReadonlySet<string>
}

/** Keys of other tools' configs that mean a server which is not a child process. */
const remoteKeys: ReadonlySet<string> = new Set([
  'url',
  'serverUrl',
  'httpUrl',
  'headers',
  'oauth',
  'type',
  'transport',
])

/** Validates a document as a configuration; everything that is wrong with it is in one ERR_CONFIG_INVALID. */
export function makeLayer(
  scope: Layer['scope'],
  document: Document,
  directory = dirname(document.path),
): Layer {
  const validated = validate('config', document.value)
  if (!validated.ok) {
    refuse(
      withRemoteEntries(validated.problems).map((problem): Issue => ({
        code: 'ERR_CONFIG_INVALID',
        document,
        problem,
      })),
    )
    throw new SallyportError('ERR_INTERNAL', `${document.path}: refused without a reason`)
  }
  const config = validated.value
  if (config.exclusive && scope !== 'enterprise')
    refuse([
      issue('ERR_CONFIG_SCOPE', document, ['exclusive'], {
        expected: 'false: only the enterprise file may shut out others',
        mend: 'remove it',
      }),
    ])
  refuse(checkNames(config, document))
  return {
    scope,
    document,
    directory,
    config,
    stated: new Set(Object.keys({ ...(document.value as object) })),
  }
}

/** A remote entry is said to be one, once, instead of a row of unknown keys and a missing command. */
function withRemoteEntries(problems: readonly Problem[]): readonly Problem[] {
  const isRemote = ({ kind, at }: Problem): boolean =>
    kind === 'unknown-key' && at.length === 3 && at[0] === 'servers' && remoteKeys.has(String(at[2]))
  const remote = new Set(problems.filter(isRemote).map(({ at }) => at[1]))
  return problems
    .filter(
      ({ kind, at }) =>
        !(kind === 'missing' && at[0] === 'servers' && at[2] === 'command' && remote.has(at[1])),
    )
    .map((problem) =>
      isRemote(problem)
        ? {
            ...problem,
            expected:
              'a stdio server: command and args; this is not a stdio server, or says what needs no saying',
            mend: `remove ${String(problem.at[2])}; Sallyport runs every server itself, over stdio`,
          }
        : problem,
    )
}

function checkNames({ allowed_commands: commands }: Config, document: Document): readonly Issue[] {
  const names = commands.map((entry) => (typeof entry === 'string' ? entry : entry.name))
  return names.flatMap((name, index) => {
    if (names.indexOf(name) === index) return []
    const said = { got: `${name} a second time`, expected: 'each name once', mend: 'remove one of them' }
    return [issue('ERR_CONFIG_INVALID', document, ['allowed_commands', index], said)]
  })
}
