// A root that has no list of users, as a small image's, and one whose list can't be read.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const at = (path: string): string => fileURLToPath(new URL(`../../src/${path}`, import.meta.url))

const script = `
import { findDenials } from ${JSON.stringify(at('sandbox/mounts/denials.ts'))}
import { admission } from ${JSON.stringify(at('daemon/separation.ts'))}
const facts = { homes: ['/home/of-the-daemon'], own: [], environment: {} }
const settings = { hostGroup: null, servers: new Map(), requireSeparation: false }
try {
  const found = findDenials(facts, ['/srv']).filter(({ path }) => path.startsWith('/home/'))
  console.log(JSON.stringify({ homes: found.length, separation: admission(settings, 1234).separation }))
} catch ({ code, message }) {
  console.log(JSON.stringify({ code, message }))
}`

/** What the script says in a root that is changed so, by options of bubblewrap. */
const said = async (change: readonly string[]): Promise<unknown> => {
  const args = ['--dev-bind', '/', '/', ...change, process.execPath, '--input-type=module', '-e', script]
  return JSON.parse((await promisify(execFile)('bwrap', args)).stdout)
}

test('without one nobody has a name, and the daemon’s own home is still denied', async () => {
  const { homes, separation } = (await said(['--tmpfs', '/etc'])) as { homes: number; separation: string }
  expect(homes).toBeGreaterThan(5)
  expect(separation).toBe('none')
})

test('one that can’t be read is no empty one: nothing is started', async () => {
  expect(await said(['--tmpfs', '/etc', '--dir', '/etc/passwd'])).toEqual({
    code: 'ERR_SANDBOX_SETUP',
    message: expect.stringContaining("/etc/passwd can't be read (EISDIR)"),
  })
})
