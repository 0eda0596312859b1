// The credentials that a server's entry asks for: of those that exist, into places that it has, and in one way each.
import { resolve } from 'node:path'
import { secretShape } from '../lib/secret-shape.ts'
import type { CredentialSource, Injection } from '../schema/credentials.ts'
import { tlsPorts } from '../schema/egress.ts'
import type { Step } from '../schema/problem.ts'
import type { Config } from '../schema/types.gen.ts'
import type { Document } from './document.ts'
import type { Layer } from './layer.ts'
import { coversHost } from './narrowing.ts'
import { issue, type Issue } from './refusal.ts'

type Server = Config['servers'][string]
type Entry = Server['credentials'][number]
type Said = Parameters<typeof issue>[3]
/** An issue in the making: steps below the entry, and what is said of it */
type Finding = readonly [steps: readonly Step[], said: Said]

/** Letters of a placeholder that nobody can guess: 22 of 62 kinds hold 128 random bits. */
const randomLetters = 22

/** Headers that say how a message is framed or where it goes: none of them is a place for a secret. */
const framing =
  /^(host|content-length|transfer-encoding|te|trailer|connection|keep-alive|upgrade|expect|proxy-.*)$/

/** Variables that the sandbox or the supervisor sets itself. */
const taken =
  /^(PATH|HOME|USER|LANG|TERM|TMPDIR|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|.*_CA_BUNDLE|GIT_SSL_CAINFO|PIP_CERT|DENO_CERT|CARGO_HTTP_CAINFO|(HTTPS?|NO|ALL)_PROXY|NODE_USE_ENV_PROXY)$/i

/** An entry as the broker takes it. */
export function injectionOf(entry: Entry, absolute: (path: string) => string): Injection {
  const caFile = entry.ca_file === null ? null : absolute(entry.ca_file)
  return {
    use: entry.use,
    inject: entry.inject,
    as: entry.as,
    hosts: entry.hosts.map((written) => ({ ...hostPort(written), caFile })),
    headers: [entry.header],
    query: entry.query,
    body: entry.body,
    websocket: entry.websocket,
    placeholder: entry.placeholder,
  }
}

/** The sources of one file, by name. */
export function sourcesOf({ config, directory }: Layer): Readonly<Record<string, CredentialSource>> {
  return Object.fromEntries(
    Object.entries(config.credentials).map(([name, { env, file, command }]): [string, CredentialSource] => [
      name,
      command !== undefined
        ? { kind: 'command', argv: command }
        : file !== undefined
          ? { kind: 'file', path: resolve(directory, file) }
          : { kind: 'env', variable: env ?? '' },
    ]),
  )
}

/** One issue for each source that is a program without an absolute path, or whose words hold a secret. */
export function checkSources({ config, document }: Layer): readonly Issue[] {
  return Object.entries(config.credentials).flatMap(([name, { command = [] }]) => {
    const at = ['credentials', name, 'command']
    const [program] = command
    const issues = command.flatMap((argument, index) => {
      const shape = secretShape(argument)
      if (shape === null) return []
      const said = { got: `what looks like ${shape}`, expected: 'a program that prints the secret' }
      return [issue('ERR_CONFIG_INVALID', document, [...at, index], said)]
    })
    if (program === undefined || /^(\/(?!\.{1,2}(\/|$))[^/]+)+$/.test(program)) return issues
    const said = {
      got: 'a program that would be looked for',
      expected: 'an absolute path without `..`',
      mend: 'write the path out; there is no shell and no PATH',
    }
    return [issue('ERR_CONFIG_INVALID', document, [...at, 0], said), ...issues]
  })
}

/** Everything that is wrong with the credentials of one entry. */
export function checkInjections(
  server: Server,
  sources: ReadonlySet<string>,
  document: Document,
  at: readonly Step[],
): readonly Issue[] {
  return server.credentials.flatMap((entry, index) =>
    [
      ...checkName(entry, server, index, sources),
      ...checkKind(entry, server),
      ...(entry.inject === 'egress' ? checkSwap(entry, server) : []),
    ].map(([steps, said]) => issue('ERR_CONFIG_INVALID', document, [...at, index, ...steps], said)),
  )
}

function checkName(
  { use, as, inject }: Entry,
  { credentials, env }: Server,
  index: number,
  sources: ReadonlySet<string>,
): readonly Finding[] {
  const known = [...sources].join(', ')
  const findings: Finding[] = sources.has(use)
    ? []
    : [
        [
          ['use'],
          {
            got: use,
            expected: known === '' ? 'a name in credentials, which has none' : `one of ${known}`,
            mend: `say in credentials where ${use} comes from`,
          },
        ],
      ]
  // What goes into one request's _meta is no variable, so the two cannot meet.
  const isVariable = inject !== 'meta'
  const first = credentials.findIndex((it) => it.as === as && (it.inject !== 'meta') === isVariable)
  if (first < index)
    findings.push([['as'], { got: `${as} a second time`, expected: 'each name once', mend: 'rename one' }])
  else if (isVariable && (taken.test(as) || Object.hasOwn(env, as)))
    findings.push([
      ['as'],
      {
        got: as,
        expected: Object.hasOwn(env, as) ? 'a variable that env leaves alone' : 'a variable of its own',
        mend: Object.hasOwn(env, as) ? `remove env.${as}` : 'rename it',
      },
    ])
  return findings
}

/** A value that enters the sandbox must leave with the call; and what belongs to the proxy says nothing elsewhere. */
function checkKind(entry: Entry, { instance }: Server): readonly Finding[] {
  const { inject } = entry
  const findings: Finding[] = []
  if ((inject === 'file' || inject === 'env') && instance !== 'call')
    findings.push([
      ['inject'],
      {
        got: `${inject} with instance: ${instance}`,
        expected: `instance: call, since a process keeps what it was given by ${inject}`,
        mend: 'say instance: call, or inject: egress',
      },
    ])
  if (inject === 'egress') return findings
  const said = { expected: 'nothing', mend: `remove it: it means something for inject: egress alone` }
  if (entry.hosts.length > 0) findings.push([['hosts'], { got: 'hosts', ...said }])
  if (entry.header !== 'authorization') findings.push([['header'], { got: entry.header, ...said }])
  for (const key of ['query', 'body', 'websocket'] as const)
    if (entry[key]) findings.push([[key], { got: 'true', ...said }])
  if (entry.ca_file !== null) findings.push([['ca_file'], { got: 'a file', ...said }])
  const { prefix, length } = entry.placeholder
  if (prefix !== '' || length !== 40) findings.push([['placeholder'], { got: 'a form', ...said }])
  return findings
}

function checkSwap(entry: Entry, server: Server): readonly Finding[] {
  const { hosts, header, placeholder } = entry
  const findings: Finding[] = []
  if (hosts.length === 0)
    findings.push([
      ['hosts'],
      { got: 'none', expected: 'the host:port where it is used', mend: 'list it, here and in egress' },
    ])
  for (const [index, written] of hosts.entries()) {
    const target = hostPort(written)
    const shape = secretShape(written)
    const said =
      shape !== null
        ? { got: `what looks like ${shape}`, expected: 'host:port', mend: 'remove it, and replace it' }
        : written.includes('*')
          ? { got: written, expected: 'an exact host', mend: 'name each host that is to have the secret' }
          : !server.egress.some((grant) => coversHost(grant, target))
            ? { got: written, expected: 'a host and port of the server’s egress', mend: `list it in egress` }
            : isUnsaid(server, target)
              ? {
                  got: `${written}, on a port where TLS is not usual`,
                  expected: 'egress that says whether the secret goes out in the clear',
                  mend: 'say tls: true or tls: false in the egress entry',
                }
              : null
    if (said !== null) findings.push([['hosts', index], said])
    const other = server.credentials.find(
      (it) => it.inject === 'egress' && it.hosts.includes(written) && it.ca_file !== entry.ca_file,
    )
    if (other !== undefined)
      findings.push([
        ['ca_file'],
        { got: `another file for ${written} than ${other.as} has`, expected: 'one for each host' },
      ])
  }
  if (framing.test(header))
    findings.push([
      ['header'],
      {
        got: header,
        expected: 'a header of the request’s own, not one of the connection',
        mend: 'choose another',
      },
    ])
  const least = placeholder.prefix.length + randomLetters
  if (placeholder.length < least)
    findings.push([
      ['placeholder', 'length'],
      {
        got: String(placeholder.length),
        expected: `at least ${least}: the prefix and ${randomLetters} letters that nobody can guess`,
      },
    ])
  if (secretShape(placeholder.prefix) !== null)
    findings.push([
      ['placeholder', 'prefix'],
      { got: 'what looks like a secret', expected: 'a prefix alone' },
    ])
  return findings
}

/** A secret on its way over a port of no fixed meaning: nobody should have to guess whether it is encrypted. */
function isUnsaid({ egress }: Server, target: { readonly host: string; readonly port: number }): boolean {
  const exact = egress.find(({ host, port }) => host === target.host && port === target.port)
  const grant = exact ?? egress.find((it) => coversHost(it, target))
  return grant?.tls === 'auto' && !tlsPorts.has(target.port)
}

function hostPort(written: string): { readonly host: string; readonly port: number } {
  const colon = written.lastIndexOf(':')
  return { host: written.slice(0, colon), port: Number(written.slice(colon + 1)) }
}
