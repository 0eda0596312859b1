// A control group that can't be looked at: what is said of it is what was tried.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newDaemonId } from '../../../src/lib/ids.ts'
import { removeDirectory } from '../../../src/sandbox/cgroup/directory.ts'
import { hostKill } from '../../support/cgroup-host.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { isRoot, ordinaryUid } from '../../support/user.ts'
import { patienceMs } from '../../support/patience.ts'

/** Removes a folder with no descriptor to spare; prints what was said of the failure. */
const remove = `
import { closeSync, openSync } from 'node:fs'
import { removeDirectory } from ${JSON.stringify(new URL('../../../src/sandbox/cgroup/directory.ts', import.meta.url).href)}
const held = []
try { for (;;) held.push(openSync('/dev/null')) } catch {}
const failed = await removeDirectory(process.argv[1], 50).catch((error) => error)
for (const descriptor of held) closeSync(descriptor)
console.log(JSON.stringify({ code: failed.code, message: failed.message, cause: failed.cause?.code }))
`

test('a group that no descriptor is left to look at is not said to have been killed', async () => {
  await using folder = await tempDir()
  mkdirSync(join(folder.path, 'group', 'below'), { recursive: true })
  const command = [process.execPath, '--input-type=module', '-e', remove, join(folder.path, 'group')]
  const said = execFileSync('prlimit', ['--nofile=64', ...command], { encoding: 'utf8', timeout: patienceMs })
  expect(JSON.parse(said)).toEqual({
    code: 'ERR_SHORTAGE',
    message: expect.stringMatching(/could not be looked at or killed for 50 ms: EMFILE; raise the limit/),
    cause: 'EMFILE',
  })
})

/** Kills what is in a group by the rights of a user who has the group, as systemd delegates one. */
const kill = `
import { killDirectory } from ${JSON.stringify(new URL('../../../src/sandbox/cgroup/directory.ts', import.meta.url).href)}
process.setegid(${ordinaryUid})
process.seteuid(${ordinaryUid})
killDirectory(process.argv[1])
`

test.runIf(isRoot && hostKill?.version === 2)(
  'a user kills what is in a group of version 2 that is his by the switch, which nobody may read',
  async () => {
    const path = join(hostKill?.path ?? '', `sallyport-test-${newDaemonId()}`)
    mkdirSync(path)
    chownSync(join(path, 'cgroup.kill'), ordinaryUid, ordinaryUid)
    // Root's: no signal of that user's would reach it.
    const inside = spawn('sleep', ['60'])
    const ended = once(inside, 'exit')
    try {
      writeFileSync(join(path, 'cgroup.procs'), String(inside.pid))
      execFileSync(process.execPath, ['--input-type=module', '-e', kill, path], { encoding: 'utf8' })
      expect(await ended).toEqual([null, 'SIGKILL'])
    } finally {
      inside.kill('SIGKILL')
      await removeDirectory(path)
    }
  },
)
