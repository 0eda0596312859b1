// Verbs that take back what they made are asked to end while they are loading: they say so by their status, as ever.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { endServe, place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Has a signal sent just before the verbs are loaded, which takes most of a start; or elsewhere, or to all of the process group. */
const preload = (signal: string, { before = 'parts/program-', whom = 'process.pid' } = {}): string =>
  `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, next) {
        if (url.includes('/dist/${before}')) process.kill(${whom}, '${signal}')
        return next(url, context)
      },
    })`)}`

test.each([
  ['SIGTERM', ['verify', '--profile', 'offline']],
  ['SIGINT', ['verify', '--profile', 'offline']],
  ['SIGTERM', ['profile', 'learn', '--', process.execPath, cli]],
] as const)('%s before %o is loaded ends it with 3', async (signal, args) => {
  const child = spawn(process.execPath, ['--import', preload(signal), cli, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exit = once(child, 'exit')
  const said = await text(child.stderr)
  expect(await exit).toEqual([3, null])
  expect(said).toContain('interrupted, before it was through (ERR_CALL_CANCELLED)')
})

test('a verb that makes nothing ends by the signal itself', async () => {
  const child = spawn(process.execPath, ['--import', preload('SIGTERM'), cli, 'profile', 'show', 'offline'], {
    stdio: 'ignore',
  })
  expect(await once(child, 'exit')).toEqual([null, 'SIGTERM'])
})

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s before a daemon is loaded ends it with 0, and nothing is taken',
  async (signal) => {
    await using at = await place()
    const daemon = at.start(['serve'], { NODE_OPTIONS: `--import=${preload(signal)}` })
    const exit = once(daemon, 'exit')
    expect(await text(daemon.stderr ?? Readable.from([]))).toBe('')
    expect(await exit).toEqual([0, null])
    expect([existsSync(join(at.runtimeDir, 'host')), existsSync(at.stateDir)]).toEqual([false, false])
  },
)

test('SIGHUP before a daemon is loaded has it read its configuration once more when it is up', async () => {
  await using at = await place()
  const { process: daemon, client } = await serve(at, { NODE_OPTIONS: `--import=${preload('SIGHUP')}` })
  await eventually(async () => {
    const { records } = await client.call('audit/query', { type: 'config.applied', limit: 10 })
    return records.length === 2
  })
  await endServe({ process: daemon, client })
})

test.each([['as it is loaded'], ['later']])(
  'SIGUSR1 opens no debugger of a daemon %s, which every user of the machine would reach',
  async (when) => {
    await using at = await place()
    const env = when === 'later' ? {} : { NODE_OPTIONS: `--import=${preload('SIGUSR1')}` }
    const daemon = at.start(['serve'], env)
    const said = text(daemon.stderr ?? Readable.from([]))
    const client = await eventually(() => at.connect('operator').catch(() => null))
    if (when === 'later') daemon.kill('SIGUSR1')
    expect((await client.call('servers/list', {})).servers).toEqual([])
    await endServe({ process: daemon, client })
    expect(await said).not.toContain('Debugger')
  },
)

test('SIGTERM to a daemon and to the process that reads its configuration ends it with 0', async () => {
  await using at = await place()
  const amid = preload('SIGTERM', { before: 'config/load-child.js', whom: '0' })
  const daemon = spawn(process.execPath, [cli, 'serve'], {
    env: { ...at.env, NODE_OPTIONS: `--import=${amid}` },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true, // in a group of its own
  })
  const exit = once(daemon, 'exit')
  expect(await text(daemon.stderr)).toBe('')
  expect(await exit).toEqual([0, null])
})
