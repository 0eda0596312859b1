// What the file system throws, told apart.
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { patienceMs } from '../support/patience.ts'

/** Loads what a daemon loads late, with ever more descriptors to spare, until it is there; prints what was said of each failure. */
const loadLate = `
import { closeSync, openSync } from 'node:fs'
import { isShortage } from ${JSON.stringify(new URL('../../src/lib/missing.ts', import.meta.url).href)}
const said = []
for (let spare = 0, isThere = false; !isThere; spare++) {
  const held = []
  try { for (;;) held.push(openSync('/dev/null')) } catch {}
  for (let left = spare; left > 0; left--) closeSync(held.pop())
  const failed = await import(process.argv[1]).then(() => null, (error) => ({ code: error.code, isShort: isShortage(error) }))
  for (const descriptor of held) try { closeSync(descriptor) } catch {}
  isThere = failed === null
  if (!isThere) said.push(failed)
}
console.log(JSON.stringify(said))
`

test('a module that there is no descriptor to load with is a shortage, and is loaded afterwards', () => {
  const module = new URL('../../dist/egress/intercept/interceptor.js', import.meta.url).href
  const command = [process.execPath, '--input-type=module', '-e', loadLate, module]
  const said = execFileSync('prlimit', ['--nofile=64', ...command], { encoding: 'utf8', timeout: patienceMs })
  const failures = JSON.parse(said) as { readonly code: string; readonly isShort: boolean }[]
  expect(failures.map(({ code }) => code)).toContain('ERR_INVALID_PACKAGE_CONFIG')
  expect(failures.filter(({ isShort }) => !isShort)).toEqual([])
})
