// A draft as the file that people read: each grant on a line with its reason, and at the end what was not granted.
import type { Profile } from '../../schema/types.gen.ts'
import type { Draft, DraftParts } from './draft.ts'

/** Paths that are named for one reason */
const examples = 12

/** The file's text. Every string is quoted, so that no name of a file and no word of a server is anything else. */
export const formatDraft = (
  { profile, parent, stated, wider }: Draft,
  parts: DraftParts,
  proof = '',
): string => {
  const says = (...path: readonly string[]): boolean =>
    stated.some((each) => each.join('.') === path.join('.'))
  const { peaks } = parts.needs
  const seen: Readonly<Record<string, string>> = {
    'filesystem.tmp_bytes': `${size(peaks.scratchBytes)} at most were in use`,
    'limits.memory_bytes': `${size(peaks.memoryBytes)} at most were in use`,
    'limits.pids': `${Math.max(1, peaks.threads)} at most at once`,
    'limits.open_files': `${peaks.descriptors} at most in one process`,
    exec:
      parts.needs.started.length === 0
        ? 'it started no other program'
        : `it started ${parts.needs.started.slice(0, 3).join(', ')}`,
  }
  const scalar = (key: string, indent: string, value: string | number, path: string): readonly string[] =>
    says(...path.split('.'))
      ? [`${indent}${key}: ${value}${path in seen ? ` # ${comment(seen[path] ?? '')}` : ''}`]
      : []
  const { filesystem, network, environment, limits } = profile
  return [
    '# A draft, to be read: it grants what this server was seen to use, and a hostile one asks for what it wants.',
    ...(proof === '' ? [] : [`# ${comment(proof)}.`]),
    'version: 1',
    `name: ${text(profile.name)}`,
    'draft: true # take this line away when you have read the others',
    `description: ${text(profile.description)}`,
    `extends: ${parent}`,
    ...(wider.length > 0 ? [`widens: true # beyond ${parent}: ${comment(beyond(wider))}`] : []),
    ...section('filesystem', [
      ...(says('filesystem', 'read') ? grants('read', filesystem.read) : []),
      ...(says('filesystem', 'write') ? grants('write', filesystem.write) : []),
      ...scalar('mounts', '  ', filesystem.mounts, 'filesystem.mounts'),
      ...scalar('tmp_bytes', '  ', filesystem.tmp_bytes, 'filesystem.tmp_bytes'),
    ]),
    ...section('network', [
      ...scalar('mode', '  ', network.mode, 'network.mode'),
      ...(says('network', 'allow') ? hosts(network.allow) : []),
    ]),
    ...(says('credentials') ? ['credentials: []'] : []),
    ...scalar('exec', '', profile.exec, 'exec'),
    ...section('environment', [
      ...(says('environment', 'pass') ? [`  pass: ${JSON.stringify(environment.pass)}`] : []),
      ...(says('environment', 'set') ? variables(environment.set) : []),
    ]),
    ...section('limits', [
      ...scalar('memory_bytes', '  ', limits.memory_bytes, 'limits.memory_bytes'),
      ...scalar('pids', '  ', limits.pids, 'limits.pids'),
      ...scalar('cpu', '  ', limits.cpu, 'limits.cpu'),
      ...scalar('open_files', '  ', limits.open_files, 'limits.open_files'),
      ...scalar('file_bytes', '  ', limits.file_bytes, 'limits.file_bytes'),
    ]),
    'assertions:',
    ...profile.assertions.map(
      ({ assert, reason }) => `  - { assert: ${text(assert)}, reason: ${text(reason)} }`,
    ),
    `# It made ${parts.callCount} different system calls, and the strict list allows all it needs.`,
    ...parts.refusedCalls.map(
      (name) => `# The filter refused ${comment(name)}; nothing is allowed beyond the list.`,
    ),
    '# Variables that a program reads can not be seen from outside: name those that it needs with --env.',
    ...withheldLines(parts.withheld),
    '',
  ].join('\n')
}

/** What was asked for in vain, by why; where many were asked for the same, as examples. */
const withheldLines = (withheld: DraftParts['withheld']): readonly string[] => {
  const byReason = Map.groupBy(withheld, ({ why }) => why)
  const lines = [...byReason].flatMap(([why, all]) => [
    ...all.slice(0, examples).map(({ path }) => `#   ${comment(path)}: ${comment(why)}`),
    ...(all.length > examples ? [`#   and ${all.length - examples} more: ${comment(why)}`] : []),
  ])
  return lines.length === 0 ? [] : ['# Asked for, and not granted:', ...lines]
}

const section = (name: string, lines: readonly string[]): readonly string[] =>
  lines.length === 0 ? [] : [`${name}:`, ...lines]

const grants = (key: string, all: Profile['filesystem']['read']): readonly string[] =>
  all.length === 0
    ? [`  ${key}: []`]
    : [
        `  ${key}:`,
        ...all.map(({ path, reason }) => `    - { path: ${text(path)}, reason: ${text(reason)} }`),
      ]

const hosts = (all: Profile['network']['allow']): readonly string[] =>
  all.length === 0
    ? ['  allow: []']
    : [
        '  allow:',
        ...all.map(({ host, port, address, private: isPrivate, reason }) => {
          const more = `${address === null ? '' : `, address: ${text(address)}`}${isPrivate ? ', private: true' : ''}`
          return `    - { host: ${text(host)}, port: ${port}${more}, reason: ${text(reason)} }`
        }),
      ]

const variables = (set: Profile['environment']['set']): readonly string[] =>
  Object.keys(set).length === 0
    ? ['  set: {}']
    : [
        '  set:',
        ...Object.entries(set).map(
          ([name, value]) => `    ${name}: ${text(typeof value === 'string' ? value : value.value)}`,
        ),
      ]

const words: Readonly<Record<string, string>> = {
  'filesystem.read': 'paths to read',
  'filesystem.write': 'paths to write',
  'filesystem.tmp_bytes': 'scratch space',
  'network.mode': 'a network',
  'network.allow': 'hosts',
  'environment.pass': 'variables',
  'environment.set': 'variables',
  'limits.memory_bytes': 'memory',
  'limits.pids': 'processes',
  'limits.open_files': 'open files',
}

const beyond = (wider: readonly (readonly string[])[]): string =>
  [...new Set(wider.flatMap((path) => words[path.join('.')] ?? []))].join(', ')

const size = (bytes: number): string =>
  bytes < 1_048_576 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1_048_576).toFixed(1)} MiB`

// JSON’s strings are YAML’s, and what YAML would not have in a file is escaped.
const text = (value: string): string =>
  JSON.stringify(value).replace(
    /[^\x20-\x7e\u2019]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const comment = (value: string): string => value.replace(/[^\x20-\x7e\u2019]/g, '?').slice(0, 400)
