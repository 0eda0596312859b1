// What containers need is loaded when the first is asked for, which may be when descriptors have run out.
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const engine = new URL('../../src/sandbox/docker/engine.ts', import.meta.url).href
/** Uses up all descriptors in the midst of loading dockerode, and gives them back once that has failed. */
const script = `
  import { closeSync, openSync } from 'node:fs'
  import Module from 'node:module'
  const { openEngine } = await import(${JSON.stringify(engine)})
  const held = []
  const load = Module._extensions['.js']
  Module._extensions['.js'] = (module, path) => {
    if (held.length === 0 && path.includes('docker-modem')) try { for (;;) held.push(openSync('/dev/null')) } catch {}
    load(module, path)
  }
  const tried = () => openEngine({ kind: 'unix', socketPath: '/no/such/engine', from: 'test' }, {}).then(() => 'loaded', ({ message }) => message)
  const first = await tried()
  for (const descriptor of held) closeSync(descriptor)
  console.log(JSON.stringify([first, await tried()]))`

test('what could not be loaded for want of descriptors is loaded once there are some', () => {
  const node = `exec ${process.execPath} --input-type=module -e "$SCRIPT"`
  const { stdout, stderr } = spawnSync('sh', ['-c', `ulimit -n 100; ${node}`], {
    encoding: 'utf8',
    env: { SCRIPT: script, PATH: process.env['PATH'] },
  })
  expect(JSON.parse(stdout || '[]'), stderr).toEqual([
    expect.stringContaining('too many open files'),
    'loaded',
  ])
})
