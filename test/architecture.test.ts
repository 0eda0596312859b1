// The shape of the code as a table: which part may import which, and why. A new arrow is a decision, made here.
import { describe, expect, test } from 'vitest'
import { sourcesOf, withoutComments, type SourceFile } from './support/source.ts'

/** A part of src, what it may import besides itself and what everything may, and the reason for the limit. */
interface Part {
  readonly from: string
  readonly mayImport: readonly string[]
  /** What it may import as types only */
  readonly types?: readonly string[]
  readonly reason: string
}

const foundations = ['errors.ts', 'lib/', 'schema/']

/** The first row whose `from` begins the path of a file holds for it. */
const parts: readonly Part[] = [
  { from: 'lib/', mayImport: [], reason: 'the bottom: what it needs, everything above would need' },
  { from: 'errors.ts', mayImport: ['lib/'], reason: 'every part throws these, so they stand on nothing' },
  {
    from: 'log.ts',
    mayImport: foundations,
    reason: 'functions take a logger; only a main program makes one',
  },
  {
    from: 'schema/',
    mayImport: foundations,
    reason: 'shapes are shared by parts that do not know one another',
  },
  { from: 'config/', mayImport: foundations, reason: 'a file becomes a value, and knows not who uses it' },
  { from: 'rpc/', mayImport: foundations, reason: 'a peer of call and sandbox: the wire decides nothing' },
  {
    from: 'call/',
    mayImport: foundations,
    reason: 'a decision must be readable, and testable, without a machine',
  },
  {
    from: 'journal/',
    mayImport: foundations,
    reason: 'a peer of call and rpc: it keeps what it is given, whatever that means',
  },
  {
    from: 'sandbox/',
    mayImport: foundations,
    reason: 'the wall holds whatever was decided and whoever asked',
  },
  {
    from: 'egress/',
    mayImport: foundations,
    reason: 'a peer of sandbox and credentials: it judges where bytes may go, whoever sends them',
  },
  {
    from: 'credentials/',
    mayImport: foundations,
    reason: 'a peer of egress and call: it keeps secrets, and others say when one is wanted',
  },
  {
    from: 'credentials/',
    mayImport: foundations,
    reason: 'a peer of egress: it holds secrets, and knows nothing of connections',
  },
  {
    from: 'supervisor/message/',
    mayImport: foundations,
    reason: 'one message, read or written: whoever says it to whom is not known here',
  },
  {
    from: 'supervisor/questions/',
    mayImport: [...foundations, 'supervisor/message/'],
    reason: 'what a server asks a person is read, whatever becomes of it',
  },
  {
    from: 'supervisor/instance/',
    mayImport: [...foundations, 'sandbox/'],
    types: ['rpc/protocol.ts', 'supervisor/ports.ts'],
    reason: 'a process lives and ends the same, whoever speaks with it',
  },
  {
    from: 'supervisor/shared/',
    mayImport: [...foundations, 'supervisor/message/', 'supervisor/instance/'],
    types: ['rpc/protocol.ts', 'sandbox/driver.ts', 'supervisor/ports.ts'],
    reason: 'who gets which message of a process is settled without reading what it asks',
  },
  {
    from: 'supervisor/lanes/',
    mayImport: [
      ...foundations,
      'supervisor/message/',
      'supervisor/questions/',
      'supervisor/shared/',
      'supervisor/dispatch.ts',
    ],
    types: ['sandbox/driver.ts', 'supervisor/ports.ts'],
    reason: 'a line is judged by itself and by what is open: whose session it is in is not known here',
  },
  {
    from: 'supervisor/client/',
    mayImport: [
      ...foundations,
      'supervisor/message/',
      'supervisor/instance/',
      'supervisor/shared/',
      'supervisor/lanes/',
      'supervisor/dispatch.ts',
    ],
    types: ['rpc/governed.ts', 'supervisor/ports.ts'],
    reason: 'a client of a server speaks; what it may say was settled before',
  },
  {
    from: 'supervisor/governed/',
    mayImport: [
      ...foundations,
      'sandbox/',
      'supervisor/message/',
      'supervisor/questions/',
      'supervisor/instance/',
      'supervisor/lanes/',
      'supervisor/client/',
    ],
    types: ['rpc/protocol.ts', 'supervisor/ports.ts'],
    reason: 'a held call belongs to whatever session or slot asked, and knows neither',
  },
  {
    from: 'supervisor/',
    mayImport: [...foundations, 'sandbox/'],
    types: ['rpc/protocol.ts', 'rpc/governed.ts'],
    reason: 'it owns processes; who may call them was settled before',
  },
  {
    from: 'client/',
    mayImport: [...foundations, 'rpc/'],
    reason: 'whoever has only the socket can do the same',
  },
  {
    from: 'daemon/',
    mayImport: [
      ...foundations,
      'rpc/',
      'call/',
      'journal/',
      'config/',
      'supervisor/',
      'sandbox/',
      'egress/',
      'credentials/',
    ],
    reason: 'the one place where the parts meet',
  },
  {
    from: 'verify/',
    mayImport: [
      ...foundations,
      'config/',
      'sandbox/',
      'egress/',
      'supervisor/',
      'call/',
      'journal/',
      'credentials/',
    ],
    reason: 'it tries what the parts promise, with the very parts; nothing of the daemon rests on it',
  },
  {
    from: 'cli/verify',
    mayImport: [...foundations, 'log.ts', 'config/', 'sandbox/drivers.ts', 'verify/', 'daemon/run-one.ts'],
    reason: 'it speaks of this machine and a profile; a server it runs as `sallyport run` does',
  },
  {
    from: 'cli/learn.ts',
    mayImport: [...foundations, 'config/', 'verify/', 'cli/'],
    reason: 'it launches by itself, and tries what it drafts; no daemon has a part in it',
  },
  {
    from: 'cli/serve.ts',
    mayImport: [...foundations, 'log.ts', 'config/', 'client/', 'daemon/', 'rpc/', 'sandbox/init-binary.ts'],
    reason: 'the daemon’s main program',
  },
  {
    from: 'cli/run.ts',
    mayImport: [...foundations, 'log.ts', 'config/', 'client/', 'daemon/', 'rpc/'],
    reason: 'one server without a daemon: the same parts in one process',
  },
  {
    from: 'cli/profile.ts',
    mayImport: [
      ...foundations,
      'config/',
      'sandbox/syscalls.ts',
      'sandbox/mounts/denials.ts',
      'sandbox/mounts/mount-rules.ts',
      'sandbox/explain-path.ts',
      'cli/',
    ],
    reason:
      'it explains what a profile gives, and the filter’s rules, the plan of mounts and the denials are part of that; it needs no daemon',
  },
  {
    from: 'cli/stdio.ts',
    mayImport: [...foundations, 'config/', 'sandbox/init-binary.ts'],
    reason: 'it becomes the shim, which lies beside init',
  },
  {
    from: 'cli/journal-here.ts',
    mayImport: [...foundations, 'config/', 'rpc/', 'journal/'],
    reason: 'a journal must be verifiable where no daemon runs, and by whoever distrusts the one that does',
  },
  {
    from: 'cli/journal-asked.ts',
    mayImport: [...foundations, 'client/', 'rpc/', 'journal/'],
    reason: 'a journal must be readable where no daemon starts on it',
  },
  {
    from: 'cli/audit-export.ts',
    mayImport: [...foundations, 'client/', 'rpc/', 'journal/'],
    reason:
      'what is exported is held against its hashes by whoever keeps it, and not by the daemon that gave it',
  },
  {
    from: 'cli/install.ts',
    mayImport: [...foundations, 'config/', 'sandbox/docker/'],
    reason: 'it asks the engine for an image, whether a daemon runs or not',
  },
  {
    from: 'cli/doctor.ts',
    mayImport: [...foundations, 'config/', 'client/', 'rpc/', 'sandbox/'],
    reason: 'it speaks of this machine, whether a daemon runs or not',
  },
  {
    from: 'cli/own-scope.ts',
    mayImport: [...foundations, 'sandbox/cgroup/'],
    reason: 'a daemon is put where it can set limits before there is one',
  },
  {
    from: 'cli/',
    mayImport: [...foundations, 'config/', 'client/', 'rpc/'],
    reason: 'the CLI has no private door into the daemon',
  },
  {
    from: 'index.ts',
    mayImport: [...foundations, 'client/', 'rpc/'],
    reason: 'what programs get is what the CLI uses',
  },
]

/** Packages that one file wraps, so that replacing one is a change to one file. */
const wrapped: Readonly<Record<string, string>> = {
  ajv: 'schema/',
  yaml: 'config/',
  pino: 'log.ts',
  execa: 'lib/exec.ts',
  commander: 'cli/',
  nanoid: 'lib/ids.ts',
  dockerode: 'sandbox/docker/engine.ts',
  'reflect-metadata': 'egress/intercept/signer.ts',
  'ipaddr.js': 'lib/address-ranges.ts',
  '@peculiar/x509': 'egress/intercept/',
  '@modelcontextprotocol/sdk': 'client/transport.ts',
}

const sources = sourcesOf('src')
const isWithin = (path: string, places: readonly string[]): boolean =>
  places.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place))
const partOf = (path: string): Part | undefined => parts.find(({ from }) => path.startsWith(from))
const offenders = (isOffender: (file: SourceFile) => boolean): readonly string[] =>
  sources.filter(isOffender).map(({ path }) => path)

test('every file of src belongs to a part', () => {
  expect(offenders(({ path }) => partOf(path) === undefined)).toEqual([])
})

test.each(parts)('$from imports only what it may: $reason', ({ from, mayImport, types = [] }) => {
  const folder = from.endsWith('/') ? from : `${from.split('/')[0] ?? ''}/`
  const own = from.includes('/') ? [folder] : []
  const forbidden = sources
    .filter(({ path }) => partOf(path)?.from === from)
    .flatMap(({ path, imports }) => imports.map((it) => ({ path, ...it })))
    .filter(({ target }) => target.endsWith('.ts'))
    .filter(({ target }) => !isWithin(target, [...own, ...mayImport]))
    .filter(({ target, isTypeOnly }) => !(isTypeOnly && isWithin(target, types)))
    .map(({ path, target }) => `${path} -> ${target}`)
  expect(forbidden).toEqual([])
})

/** Peels off what imports nothing of the rest, or is imported by nothing of it: what stays is circles, and what is between two. */
const tiedIn = (files: readonly SourceFile[]): readonly SourceFile[] => {
  const paths = new Set(files.map(({ path }) => path))
  const imported = new Set(files.flatMap(({ imports }) => imports.map(({ target }) => target)))
  const tied = files.filter(
    ({ path, imports }) => imported.has(path) && imports.some(({ target }) => paths.has(target)),
  )
  return tied.length === files.length ? tied : tiedIn(tied)
}

test('no file needs itself by way of others, be it for a type: each can be read before those that use it', () => {
  const tied = tiedIn(sources)
  const paths = new Set(tied.map(({ path }) => path))
  const arrows = tied.flatMap(({ path, imports }) =>
    imports.filter(({ target }) => paths.has(target)).map(({ target }) => `${path} -> ${target}`),
  )
  expect(arrows).toEqual([])
})

test.each(Object.entries(wrapped))('%s has one importer, in %s', (name, place) => {
  const importers = sources.filter(({ imports }) => imports.some(({ target }) => target === name))
  expect(importers.filter(({ path }) => !isWithin(path, [place])).map(({ path }) => path)).toEqual([])
  if (name !== 'commander') expect(importers.length).toBeLessThanOrEqual(1)
})

/** Files that name the standard input of some program, and what they do with it. */
const namers: Readonly<Record<string, string>> = {
  'daemon/guard.ts': 'the guard’s, a child of the daemon’s own',
  'sandbox/program/arguments.ts': 'an error’s words',
  'sandbox/bubblewrap/argv.ts': 'a path in the sandbox',
  'sandbox/bubblewrap/tree.ts': 'hands it on',
  'sandbox/docker/answers.ts': 'a stream’s name',
  'sandbox/docker/contained.ts': 'hands it on',
  'sandbox/docker/driver.ts': 'attaches to it',
  'sandbox/docker/engine.ts': 'attaches to it',
  'sandbox/docker/ssh-agent.ts': 'an ssh client’s',
  'sandbox/driver.ts': 'its type, which has no way to write',
  'sandbox/running.ts': 'ends it',
  'sandbox/fingerprint/trial.ts': 'ends it',
  'supervisor/dispatch.ts': 'gives the write side to those who may',
  'supervisor/instance/instance.ts': 'hears its errors',
  'supervisor/client/mcp-client.ts': 'writes what was admitted, and what Sallyport itself asks',
  'supervisor/lanes/relay.ts': 'writes what was admitted, and what Sallyport itself asks',
  'supervisor/shared/seat.ts': 'a seat’s, whose lines the board passes on',
  'supervisor/instance/stop.ts': 'ends it',
  'verify/battery/devices.ts': 'a device’s name',
  'verify/battery/start.ts': 'words of a report',
  'verify/lab/exhibit.ts': 'a probe’s',
  'verify/lab/try.ts': 'a probe’s',
  'verify/learn/drive.ts': 'a driving program’s',
  'verify/learn/talk.ts': 'speaks to a server that is learned from, which no host has',
}

describe('nothing reaches a server but through the dispatch', () => {
  const importersOf = (target: string): readonly string[] =>
    offenders(({ imports }) => imports.some((it) => it.target === target))
  const saying = (pattern: RegExp): readonly string[] =>
    offenders(({ text }) => pattern.test(withoutComments(text)))

  test('the write side of a server’s stdin has three holders: the relay, the client of control calls, and a drive that is learned from', () => {
    expect(importersOf('supervisor/dispatch.ts')).toEqual([
      'supervisor/client/mcp-client.ts',
      'supervisor/lanes/relay.ts',
      'verify/learn/talk.ts',
    ])
  })

  test('elsewhere its type has no way to write, and one place undoes that type', () => {
    expect(saying(/\bServerInput\b/)).toEqual(['sandbox/driver.ts', 'supervisor/dispatch.ts'])
    const { text = '' } = sources.find(({ path }) => path === 'sandbox/driver.ts') ?? {}
    const [, members = ''] = /interface ServerInput \{\n([^}]*)\}/.exec(withoutComments(text)) ?? []
    expect(members.match(/\w+(?=\()/g)).toEqual(['end', 'on'])
  })

  test('nobody else writes to a stream of that name or pipes into it, the sandbox that makes it included', () => {
    const writers = saying(/\bstdin\b[^\n]*\.(write|cork|end\([^)])|\.pipe\([^)]*\bstdin\b/)
    const guard = 'daemon/guard.ts' // speaks to a child of its own, which is no server
    expect(writers).toEqual([
      guard,
      'supervisor/client/mcp-client.ts',
      'supervisor/lanes/relay.ts',
      'verify/learn/talk.ts',
    ])
  })

  test('no other file has a word for it: who else names it ends it, hands it on, or means another program’s', () => {
    const named = saying(/\bstdin\b/).filter((path) => !/^(cli|schema)\//.test(path))
    expect(named.filter((path) => !(path in namers))).toEqual([])
    expect(Object.keys(namers).filter((path) => !named.includes(path))).toEqual([])
  })

  test('who holds what writes to it is known, too', () => {
    const holders = {
      'supervisor/lanes/relay.ts': ['supervisor/session/boundary.ts', 'supervisor/session/session.ts'],
      'supervisor/client/own-requests.ts': [
        'supervisor/session/boundary.ts',
        'supervisor/session/surface.ts',
      ],
      'supervisor/client/mcp-client.ts': [
        'supervisor/client/tool-surface.ts',
        'supervisor/control/lone-process.ts',
        'supervisor/control/slot-connection.ts',
        'supervisor/governed/own-processes.ts',
      ],
      'supervisor/control/slot-connection.ts': [
        'supervisor/control/call-tool.ts',
        'supervisor/control/control-slot.ts',
      ],
    }
    for (const [writer, known] of Object.entries(holders)) expect(importersOf(writer), writer).toEqual(known)
    // What it is asked that no policy governs: what it lists, and who it is.
    expect(saying(/\bclient\.(request|ask)\(/)).toEqual([
      'supervisor/client/tool-surface.ts',
      'supervisor/control/look.ts',
      'supervisor/control/slot-connection.ts',
      'supervisor/governed/own-processes.ts',
    ])
    expect(saying(/\bclient\.ask\((?!method, params, options\))/)).toEqual([])
    expect(saying(/\.(say|admit)\(/).filter((path) => path.startsWith('supervisor/'))).toEqual([
      'supervisor/control/call-tool.ts',
      'supervisor/session/boundary.ts',
      'supervisor/shared/board.ts',
    ])
  })

  test('a session and a control call are what asks the governor, and nobody sends without', () => {
    expect(saying(/\bgovernor\.admit(To)?\(/)).toEqual([
      'supervisor/control/call-tool.ts',
      'supervisor/governed/governed-calls.ts',
    ])
    expect(saying(/\.request\('tools\/call'/)).toEqual([
      'supervisor/control/slot-connection.ts',
      'supervisor/governed/own-processes.ts',
    ])
    expect(saying(/\bline\.send\(/)).toEqual(['supervisor/control/call-tool.ts'])
    expect(saying(/\bline\.send\((?!admission,)/)).toEqual([])
    expect(saying(/\brelay\(\)\?\.admit\(/)).toEqual(['supervisor/session/boundary.ts'])
  })
})

test('a plan is opened by the launch that made it, and by the verification, which alone takes controls out', () => {
  const naming = (name: RegExp): readonly string[] =>
    offenders(({ text }) => name.test(withoutComments(text)))
  expect(naming(/\bopenLaunch\b/)).toEqual(['sandbox/launch.ts', 'verify/lab/try.ts'])
  expect(naming(/\blaunchToGate\b/)).toEqual([
    'daemon/machine/machine.ts',
    'daemon/machine/pools.ts',
    'sandbox/launch.ts',
  ])
  expect(naming(/\bconfine\(/)).toEqual(['sandbox/fingerprint/trial.ts', 'sandbox/launch.ts'])
})

test('the MCP SDK is a type at the edge, and never on the relay’s path', () => {
  const sdk = sources
    .flatMap(({ imports }) => imports)
    .filter(({ target }) => target.includes('contextprotocol'))
  expect(sdk.filter(({ isTypeOnly }) => !isTypeOnly)).toEqual([])
})

test('no package is imported that no file wraps', () => {
  const packages = sources.flatMap(({ imports }) => imports.map(({ target }) => target))
  const loose = packages.filter((target) => !target.endsWith('.ts') && !target.startsWith('node:'))
  expect(loose.filter((target) => !(target in wrapped))).toEqual([])
})

test('call/ touches no machine: of Node it uses node:crypto alone', () => {
  const impure = sources
    .filter(({ path }) => path.startsWith('call/'))
    .filter(({ imports }) => imports.some(({ target }) => /^node:(?!crypto$)/.test(target)))
  expect(impure.map(({ path }) => path)).toEqual([])
})

test('the environment is read in config/ and sandbox/environment.ts alone', () => {
  const readers = offenders(
    ({ path, text }) =>
      !isWithin(path, ['config/', 'sandbox/environment.ts']) &&
      /\bprocess\.env\b|\benv\b[^;]*from 'node:process'/.test(withoutComments(text)),
  )
  expect(readers).toEqual([])
})

test('every file begins with a comment that says what it is', () => {
  expect(offenders(({ text }) => !/^(#!.*\n)?\/\/ \S.{20,}/.test(text))).toEqual([])
})

test('there are no default exports, so that a thing has one name', () => {
  expect(offenders(({ text }) => /^export default\b/m.test(withoutComments(text)))).toEqual([])
})

test('no file is longer than 300 lines', () => {
  expect(offenders(({ text }) => text.split('\n').length > 300)).toEqual([])
})

test('no file is called by what could be said of any', () => {
  expect(offenders(({ path }) => /(utils?|helpers?|manager|service|common|data)\.ts$/.test(path))).toEqual([])
})

test('nothing is mocked, skipped or left alone to run', () => {
  const shortcuts = sourcesOf('test')
    .filter(({ path }) => path !== 'architecture.test.ts')
    .filter(({ text }) => /\bvi\.(mock|doMock|hoisted)\b|\b(test|it|describe)\.(skip|only|todo)\(/.test(text))
  expect(shortcuts.map(({ path }) => path)).toEqual([])
})

test.each(['src', 'test', '.ci'])(
  '%s takes no path out of a file’s URL but by fileURLToPath: a space or an ü is encoded there',
  (folder) => {
    const takers = sourcesOf(folder).filter(({ text }) => /import\.meta\.url\)\s*\.pathname\b/.test(text))
    expect(takers.map(({ path }) => path)).toEqual([])
  },
)
