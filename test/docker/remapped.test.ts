// An engine with userns-remap: it is asked not to map the users of our containers, whose mounts show the owners that were judged.
import { execFileSync } from 'node:child_process'
import { chmod, chown, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { diagnoseEngine } from '../../src/sandbox/docker/diagnose.ts'
import type { Settings } from '../../src/schema/settings.ts'
import { compile } from '../support/compile.ts'
import { canStartEngine, ownEngine } from '../support/own-engine.ts'
import { expectNoContainers } from '../support/engine.ts'
import { importImage } from '../support/image.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { textOf } from '../support/plan.ts'
import { tempDir } from '../support/temp-dir.ts'

const runAs = 1000

/** Writes a file where it may, says whose a file that is there is, and waits to be ended. */
const program = `
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
  struct stat there;
  int made = open("/data/made", O_CREAT | O_WRONLY, 0644);
  stat("/data/there", &there);
  printf("%d %d %d\\n", made >= 0, there.st_uid == getuid(), access("/data/roots", R_OK) == 0);
  fflush(stdout);
  return getchar() != EOF;
}`

describe.runIf(canStartEngine)('with an engine that maps users', () => {
  test('a server’s mounts are its own as without, in an image and in none', async () => {
    await using at = await ownEngine({ isRemapped: true })
    expect((await at.engine.info()).SecurityOptions).toContain('name=userns')
    expect(await diagnoseEngine(at.environment)).toMatchObject([{ ok: true }, { ok: true }, { ok: true }])

    await using folder = await tempDir()
    await chmod(folder.path, 0o755)
    const file = compile(join(folder.path, 'says'), program)
    await importImage(at, 'remapped', { files: { '/bin/says': { from: file } } })
    const work = join(folder.path, 'work')
    execFileSync('mkdir', [work])
    for (const [name, owner] of [
      ['there', runAs],
      ['roots', 0],
    ] as const) {
      await writeFile(join(work, name), '', { mode: 0o600 })
      await chown(join(work, name), owner, owner)
    }
    await chown(work, runAs, runAs)

    await using host = await launchHost({ environment: at.environment })
    const mounts = [{ source: work, target: '/data', access: 'write', reason: 'a test' }]
    const common = {
      driver: 'docker',
      profile: 'workspace-write',
      run_as: runAs,
      mounts,
      package: null,
      args: [],
    }
    const settings = async (more: object, path: string): Promise<Settings> => ({
      ...(await settingsFor('unused', [], { ...common, command: 'says', ...more })),
      allowedCommands: [{ name: 'says', path, interpreter: 'none' }],
    })
    for (const one of [
      await settings({ image: 'sallyport-test/remapped' }, '/bin/says'),
      await settings({}, file),
    ]) {
      await using server = await launchProbe(one, host)
      const maps = await readFile(`/proc/${server.initPid}/uid_map`, 'utf8')
      server.stdin.end()
      expect(await textOf(server.stdout)).toBe('1 1 0\n')
      expect(await server.ended).toMatchObject({ code: 0, reason: 'exited' })
      expect(maps.trim().split(/\s+/).map(Number)[1]).toBe(runAs)
      expect((await stat(join(work, 'made'))).uid).toBe(runAs)
      execFileSync('rm', [join(work, 'made')])
    }
    await expectNoContainers(at.engine)
  })
})
