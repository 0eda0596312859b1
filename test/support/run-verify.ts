// Verifies a profile in a process of its own, which may be another user's: `run-verify.ts PROFILE [self-check]` prints the result.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifyProfile } from '../../src/verify/verify.ts'

const [profile = 'offline', more] = process.argv.slice(2)
const home = await mkdtemp(join(tmpdir(), 'sp-home-'))
try {
  const host = { env: { LANG: 'C.UTF-8' }, home, uid: process.getuid?.() ?? -1 }
  const found = await verifyProfile(profile, { host, selfCheck: more === 'self-check' })
  process.stdout.write(JSON.stringify({ ...found, leftAtHome: await readdir(home) }))
} finally {
  await rm(home, { recursive: true })
}
