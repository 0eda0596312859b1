// V8's young generation, in a process of its own: what it has room for does not depend on what a test runner left in it.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const run = promisify(execFile)
const thrift = new URL('../../dist/lib/v8-thrift.js', import.meta.url).href

/** The size of the young generation once it was kept small, and after these statements, bytes. */
async function around(statements: string): Promise<{ readonly before: number; readonly after: number }> {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8'
    import { makeRoom, startSmall } from '${thrift}'
    const size = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size
    const survive = () => globalThis.kept = Array.from({ length: 600_000 }, (_, n) => ({ n }))
    startSmall()
    survive()
    const before = size()
    ${statements}
    console.log(JSON.stringify({ before, after: size() }))`
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program])
  return JSON.parse(stdout) as { before: number; after: number }
}

it('keeps the young generation as it is, however much survives', async () => {
  const { before, after } = await around('survive()')
  expect(after).toBe(before)
})

it('makes room once, and lets V8 grow it further', async () => {
  const { before, after } = await around('makeRoom()')
  expect(after).toBeGreaterThanOrEqual(8 * before)
  const further = await around('makeRoom(); for (let n = 0; n < 20; n++) survive()')
  expect(further.after).toBeGreaterThan(after)
})
