// On a Node that is too old the command line runs on its own: whoever ends the one ends the other.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Of the first process alone: its options are not passed on. */
const old = `data:text/javascript,${encodeURIComponent(
  `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`,
)}`

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends the daemon that it started', async (signal) => {
  await using at = await place()
  const child = spawn(process.execPath, ['--import', old, main, 'serve'], { env: at.env, stdio: 'ignore' })
  const answers = (): Promise<boolean> =>
    at.connect('operator').then(
      async (client) => {
        await client[Symbol.asyncDispose]()
        return true
      },
      () => false,
    )
  await eventually(answers)
  const exit = once(child, 'exit')
  child.kill(signal)
  expect(await exit).toEqual([0, null])
  expect(await answers()).toBe(false)
})

test.each([
  ['--version', 0],
  ['no-such-verb', 7],
] as const)('the status of %s is that of what ran', async (verb, status) => {
  const child = spawn(process.execPath, ['--import', old, main, verb], { stdio: 'ignore' })
  expect(await once(child, 'exit')).toEqual([status, null])
})
