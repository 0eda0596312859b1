// Verbs that take back what they made are asked to end while they are loading: they say so by their status, as ever.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const cli = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** Has a signal sent just before the verbs are loaded, which takes most of a start. */
const preload = (signal: string): string =>
  `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, next) {
        if (url.endsWith('/src/cli/program.ts')) process.kill(process.pid, '${signal}')
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
