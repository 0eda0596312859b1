// What a daemon has in memory before any server needs it.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { place, serve } from '../support/daemon.ts'

const run = promisify(execFile)
const start = new URL('../../dist/daemon/start.js', import.meta.url).href
const interceptor = new URL('../../dist/egress/intercept/interceptor.js', import.meta.url).href
const engine = new URL('../../dist/sandbox/docker/engine.js', import.meta.url).href

/** The modules of Node's own that these load, and what they load. */
async function loadedBy(...modules: readonly string[]): Promise<readonly string[]> {
  const program = `for (const one of ${JSON.stringify(modules)}) await import(one); console.log(JSON.stringify(process.moduleLoadList))`
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program])
  const loaded = JSON.parse(stdout) as readonly string[]
  return loaded.map((name) => name.replace('NativeModule ', ''))
}

it('loads neither HTTP nor TLS for a daemon without credentials and containers', async () => {
  const loaded = await loadedBy(start)
  expect(loaded).toContain('net')
  expect(loaded.filter((name) => ['http', 'https', 'http2', 'tls', 'zlib'].includes(name))).toEqual([])
})

it('loads HTTP without Node’s fetch for those that have them', async () => {
  const loaded = await loadedBy(start, interceptor, engine)
  expect(loaded).toContain('http')
  expect(loaded).not.toContain('internal/deps/undici/undici')
})

/** Has Node write at its end which modules it loaded. */
const listing = `import { registerHooks } from 'node:module'
import { writeFileSync } from 'node:fs'
const urls = []
registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
process.on('exit', () => writeFileSync(process.env.LOADED, JSON.stringify(urls)))`

it('loads its code from the few files that it was put together in, and nothing of it twice', async () => {
  await using at = await place()
  const list = join(at.folder, 'loaded.json')
  const { process: running, client } = await serve(at, {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listing)}`,
    LOADED: list,
  })
  await client[Symbol.asyncDispose]()
  const ended = once(running, 'exit')
  running.kill('SIGTERM')
  await ended
  const loaded = JSON.parse(readFileSync(list, 'utf8')) as readonly string[]
  const dist = new URL('../../dist/', import.meta.url).href
  const ours = loaded.flatMap((url) => (url.startsWith(dist) ? [url.slice(dist.length)] : []))
  expect(ours[0]).toBe('cli/main.js')
  expect(ours.slice(1).filter((path) => !path.startsWith('parts/'))).toEqual([])
  expect(ours.length).toBeLessThan(60)
})
