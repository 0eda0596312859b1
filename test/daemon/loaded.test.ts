// What a daemon has in memory before any server needs it: a real one is asked, of what it was built to.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { configOf, fixture, place, serve } from '../support/daemon.ts'

const dist = new URL('../../dist/', import.meta.url).href

/** Has a daemon write at its end which files it loaded, and which modules of Node’s own. */
const listing = `import { registerHooks } from 'node:module'
import { writeFileSync } from 'node:fs'
const urls = []
registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
if (process.argv[2] === 'serve')
  process.on('exit', () => writeFileSync(process.env.LOADED, JSON.stringify({ urls, own: process.moduleLoadList })))`

interface Loaded {
  /** Files of ours, below dist, in the order in which they came */
  readonly ours: readonly string[]
  /** Packages of npm, each once */
  readonly packages: readonly string[]
  /** Files of the package ajv, which compiles schemas */
  readonly ofAjv: readonly string[]
  /** Modules of Node’s own */
  readonly node: readonly string[]
}

async function loadedBy(config: object): Promise<Loaded> {
  await using at = await place(config)
  const list = join(at.folder, 'loaded.json')
  const { process: running, client } = await serve(at, {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listing)}`,
    LOADED: list,
  })
  await client[Symbol.asyncDispose]()
  const ended = once(running, 'exit')
  running.kill('SIGTERM')
  await ended
  const { urls, own } = JSON.parse(readFileSync(list, 'utf8')) as Record<'urls' | 'own', readonly string[]>
  const named = urls.flatMap((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? [])
  return {
    ours: urls.flatMap((url) => (url.startsWith(dist) ? [url.slice(dist.length)] : [])),
    packages: [...new Set(named)].toSorted(),
    ofAjv: urls.filter((url) => url.includes('/node_modules/ajv/')),
    node: own.map((name) => name.replace('NativeModule ', '')),
  }
}

/** What is said at the head of each module that was put into what was loaded. */
function modulesOf({ ours }: Loaded, head: RegExp): readonly string[] {
  const text = ours.map((path) => readFileSync(new URL(path, dist), 'utf8')).join('\n')
  return [...text.matchAll(head)].map(([, name = '']) => name)
}

describe('a daemon with a server, and without credentials and containers', () => {
  let loaded: Loaded
  beforeAll(async () => {
    loaded = await loadedBy(configOf({ echo: fixture('echo') }))
  }, 120_000)

  it('loads neither HTTP nor TLS, and nothing that unpacks', () => {
    expect(loaded.node).toContain('net')
    expect(loaded.node.filter((name) => /^(https?2?|tls|zlib|internal\/deps\/undici.*)$/.test(name))).toEqual(
      [],
    )
  })

  it('loads of npm what logs, reads its command line and makes ids, and nothing that comes later', () => {
    const inside = modulesOf(loaded, /^\/\/ node_modules\/((?:@[^/]+\/)?[^/\n]+)/gm)
    // pino and what it brings
    const logging = ['pino', 'pino-std-serializers', '@pinojs/redact', 'atomic-sleep', 'on-exit-leak-free']
    const more = ['quick-format-unescaped', 'safe-stable-stringify', 'sonic-boom', 'thread-stream']
    expect([...new Set(inside)].toSorted()).toEqual([...logging, ...more, 'commander', 'nanoid'].toSorted())
    const licences = readFileSync(new URL('parts/LICENSES.txt', dist), 'utf8').split('\n')
    expect(licences).toEqual(expect.arrayContaining([...new Set(inside)]))
    // of ajv two functions that its compiled checks call
    expect(loaded.packages).toEqual(['ajv', 'fast-deep-equal'])
    expect(loaded.ofAjv.filter((url) => !url.includes('/ajv/dist/runtime/'))).toEqual([])
  })

  it('loads its code from the few files that it was put together in, and nothing of it twice', () => {
    expect(loaded.ours[0]).toBe('cli/main.js')
    expect(loaded.ours.slice(1).filter((path) => !path.startsWith('parts/'))).toEqual([])
    expect(new Set(loaded.ours).size).toBe(loaded.ours.length)
    expect(loaded.ours.length).toBeLessThan(80)
  })

  it('loads no more than a part of its code: not what reads files of people, opens ways out, verifies or learns', () => {
    const modules = modulesOf(loaded, /^\/\/ dist\/(\S+)$/gm)
    expect(modules).toContain('daemon/start.js')
    const later =
      /^(config\/(load|document|profile|project|declaration|origin)\.|schema\/(validate|files)\.|verify\/|egress\/(door|intercept)|journal\/verify\.|sandbox\/docker\/engine\.)/
    expect(modules.filter((path) => later.test(path))).toEqual([])
  })

  it('loads 1.8 MiB at most of it', () => {
    const sizes = loaded.ours.map((path) => statSync(new URL(path, dist)).size)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1.8 * 2 ** 20)
  })
})

it('loads HTTP without Node’s fetch for a credential and a container, from the parts that it has for them', async () => {
  const parts = ['egress/intercept/interceptor.js', 'sandbox/docker/engine.js'].map((path) => dist + path)
  const program = `for (const one of ${JSON.stringify(parts)}) await import(one); console.log(JSON.stringify(process.moduleLoadList))`
  const command = ['--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: fileURLToPath(dist) })
  const loaded = (JSON.parse(stdout) as readonly string[]).map((name) => name.replace('NativeModule ', ''))
  expect(loaded).toContain('http')
  expect(loaded).not.toContain('internal/deps/undici/undici')
})
