// What a daemon has in memory before any server needs it.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

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
