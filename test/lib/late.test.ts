// A part of the program that is gone when it is first needed.
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { late } from '../../src/lib/late.ts'

test('a part that is no more on disk fails by name, with what to do', async () => {
  const gone = new URL('gone.mjs', import.meta.url).href
  await expect(late(() => import(gone))()).rejects.toMatchObject({
    message: expect.stringContaining('replaced on disk while this process ran'),
    cause: { code: 'ERR_MODULE_NOT_FOUND' },
  })
})

test('what fails in another way fails as it does', async () => {
  await expect(late(() => Promise.reject(new Error('its own')))()).rejects.toThrow('its own')
})

/** Loads a part with ever more descriptors to spare, until it is there, then with none; prints what came of each attempt. */
const withEverMore = `
import { closeSync, openSync } from 'node:fs'
const { late } = await import(process.argv[1])
const part = late(() => import(process.argv[2]))
const said = []
for (let spare = 0, isThere = false; !isThere && spare < 30; spare++) {
  const held = []
  try { for (;;) held.push(openSync('/dev/null')) } catch {}
  for (let left = spare; left > 0; left--) closeSync(held.pop())
  const failed = await part().then(() => null, ({ code }) => code)
  for (const descriptor of held) closeSync(descriptor)
  isThere = failed === null
  said.push(failed ?? 'loaded')
}
const held = []
try { for (;;) held.push(openSync('/dev/null')) } catch {}
said.push(await part().then(() => 'kept', ({ code }) => code))
console.log(JSON.stringify(said))
`

// Some of them stand on packages of others, which fail in another way than files of ours.
test.each([
  'egress/intercept/signer',
  'egress/intercept/interceptor',
  'egress/door',
  'sandbox/docker/engine',
])('what descriptors were too few for, however many, is loaded once there are more: %s', (part) => {
  const paths = [`../../src/lib/late.ts`, `../../dist/${part}.js`].map(
    (path) => new URL(path, import.meta.url).href,
  )
  const command = [process.execPath, '--input-type=module', '-e', withEverMore, ...paths]
  const said = JSON.parse(
    execFileSync('prlimit', ['--nofile=64', ...command], { encoding: 'utf8' }),
  ) as string[]
  expect(said.slice(-2)).toEqual(['loaded', 'kept'])
  expect(new Set(said.slice(0, -2))).toEqual(new Set(['EMFILE']))
})

/** Loads a part while the limit on descriptors is lowered at its hundredth file, as from outside, then once more when it is raised. */
const withFewerInTheMidst = `
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import Module from 'node:module'
const { late } = await import(process.argv[1])
const limit = (descriptors) => ['--pid', String(process.pid), '--nofile=' + descriptors + ':']
const raising = spawn('sh', ['-c', 'read line; exec prlimit "$@"', 'sh', ...limit(64)], { stdio: ['pipe', 'ignore', 'inherit'] })
const read = Module._extensions['.js']
let files = 0
Module._extensions['.js'] = (...file) => {
  if (++files === 100) execFileSync('prlimit', limit(5))
  return read(...file)
}
const part = late(() => import(process.argv[2]), process.argv.slice(3))
const said = () => part().then(() => 'loaded', ({ code }) => code)
const first = await said()
raising.stdin.end('\\n')
await once(raising, 'exit')
console.log(JSON.stringify([first, await said()]))
`

test.each([
  ['egress/intercept/interceptor', ['reflect-metadata', '@peculiar/x509']],
  ['sandbox/docker/engine', ['dockerode']],
])(
  'what descriptors ran out for in the midst of its packages is loaded once there are more: %s',
  (part, packages) => {
    const paths = [`../../src/lib/late.ts`, `../../dist/${part}.js`].map(
      (path) => new URL(path, import.meta.url).href,
    )
    const command = ['--input-type=module', '-e', withFewerInTheMidst, ...paths]
    const said = (names: readonly string[]): unknown =>
      JSON.parse(execFileSync(process.execPath, [...command, ...names], { encoding: 'utf8' }))
    expect(said(packages)).toEqual([expect.stringMatching(/^(EMFILE|ERR_INVALID_PACKAGE_CONFIG)$/), 'loaded'])
  },
)
