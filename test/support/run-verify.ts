// Verifies a profile in a process of its own, which may be another user's: `run-verify.ts PROFILE [HOW [ASSERTION...]]` prints it,
// where HOW is self-check, strict, plain or once, which is plain and never tried again; with `:CONTROL,…` for the probes of these
// controls alone.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAssertion, type StatedAssertion } from '../../src/schema/assertion.ts'
import type { ControlId } from '../../src/verify/arms/controls.ts'
import { verifyProfile } from '../../src/verify/verify.ts'

const [profile = 'offline', more = 'plain', ...texts] = process.argv.slice(2)
const [how, only] = more.split(':')
const controls = only?.split(',') as ControlId[] | undefined
const assertions = texts.map((text, index): StatedAssertion => {
  const parsed = parseAssertion(text)
  if (!parsed.ok) throw new Error(`${text}: ${parsed.problem.expected}`)
  return { assertion: parsed.assertion, text, reason: 'a test', file: 'arguments', line: index + 1 }
})
const home = await mkdtemp(join(tmpdir(), 'sp-home-'))
try {
  const host = { env: { LANG: 'C.UTF-8' }, home, uid: process.getuid?.() ?? -1 }
  const options = { host, selfCheck: how === 'self-check', strict: how === 'strict', assertions }
  const found = await verifyProfile(profile, {
    ...options,
    isTriedOnce: how === 'once',
    ...(controls && { controls }),
  })
  process.stdout.write(JSON.stringify({ ...found, leftAtHome: await readdir(home) }))
} finally {
  await rm(home, { recursive: true })
}
