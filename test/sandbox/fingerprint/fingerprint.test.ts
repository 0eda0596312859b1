// The fingerprint is taken by building a real sandbox, and says what a host lacks in words that mend it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { findInitBinary } from '../../../src/sandbox/init-binary.ts'
import {
  diagnose,
  requireEgress,
  requireSandbox,
  type Diagnosis,
} from '../../../src/sandbox/fingerprint/diagnose.ts'
import { fingerprint, hostFingerprint } from '../../../src/sandbox/fingerprint/fingerprint.ts'
import { compileVerdicts } from '../../../src/sandbox/seccomp.ts'
import type { Rule } from '../../../src/sandbox/syscalls.ts'
import { tryEgress, tryOnce } from '../../../src/sandbox/fingerprint/trial.ts'
import { arch } from '../../../src/verify/lab/removal.ts'
import { compile } from '../../support/compile.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { isRoot } from '../../support/user.ts'
import { patienceMs } from '../../support/patience.ts'

test('this machine can confine a server, found by doing it', async () => {
  const found = await fingerprint()
  expect(found.trial).toEqual({ works: true, tookMs: expect.any(Number), status: 125 })
  expect(found.egressTrial).toEqual({ works: true, tookMs: expect.any(Number), status: 0 })
  expect(diagnose(found).filter(({ ok, isFatal }) => isFatal && !ok)).toEqual([])
  expect(() => requireSandbox(found)).not.toThrow()
})

test('it is taken once in the life of a process', async () => {
  expect(await hostFingerprint()).toBe(await hostFingerprint())
})

test('one that was taken while something was missing is taken anew', async () => {
  const url = new URL('../../../src/sandbox/fingerprint/fingerprint.ts', import.meta.url).href
  const code = `
    import { execFileSync } from 'node:child_process'
    const { hostFingerprint } = await import('${url}')
    const limit = (bytes) => execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=' + bytes + ':'])
    const told = []
    limit(0)
    told.push((await hostFingerprint()).trial?.works)
    limit('unlimited')
    process.env.TMPDIR = '/nonexistent'
    told.push((await hostFingerprint()).egressTrial?.works)
    delete process.env.TMPDIR
    told.push((await hostFingerprint()).egressTrial?.works)
    console.log(JSON.stringify(told))`
  const told = execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
  expect(JSON.parse(told)).toEqual([false, false, true])
})

// As root: whoever mounts a disk of which there is nothing left.
test.runIf(isRoot)('a trial of the way out that finds no room for its door is a shortage', async () => {
  await using folder = await tempDir()
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'nr_inodes=1', 'tmpfs', folder.path])
  const { TMPDIR: usual } = process.env
  try {
    process.env['TMPDIR'] = folder.path
    const egressTrial = await tryEgress('/usr/bin/bwrap', await findInitBinary())
    expect(egressTrial).toMatchObject({ works: false, isUnsettled: true })
    const found = { ...(await hostFingerprint()), egressTrial }
    expect(() => requireEgress(found)).toThrow(expect.objectContaining({ code: 'ERR_SHORTAGE' }))
  } finally {
    if (usual === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = usual
    execFileSync('umount', [folder.path])
  }
})

test('a trial leaves no process behind', async () => {
  const children = (): readonly string[] =>
    execFileSync('ps', ['--ppid', String(process.pid), '-o', 'pid=,comm='], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line !== '' && !line.endsWith(' ps'))
  const others = children() // of the files before in this process
  await tryOnce('/usr/bin/bwrap', await findInitBinary())
  await tryEgress('/usr/bin/bwrap', await findInitBinary())
  await tryOnce('/bin/false', await findInitBinary())
  expect(children().filter((line) => !others.includes(line))).toEqual([])
})

test('what a process left that was killed in its trial is removed by the next one, and what a living one has is not', async () => {
  await using folder = await tempDir()
  const url = new URL('../../../src/sandbox/fingerprint/trial-door.ts', import.meta.url).href
  const code = `
    const { openTrialDoor } = await import('${url}')
    const door = await openTrialDoor()
    process.stdout.write(await door.openFor(process.geteuid()))
    process.stdin.resume()`
  const open = async (): Promise<{ readonly child: ChildProcess; readonly path: string }> => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { TMPDIR: folder.path },
    })
    const [path] = (await once(child.stdout, 'data')) as [Buffer]
    return { child, path: path.toString() }
  }
  const killed = await open()
  killed.child.kill('SIGKILL')
  await once(killed.child, 'exit')
  expect(existsSync(killed.path)).toBe(true)
  const living = await open()
  const next = await open()
  try {
    await expect.poll(() => existsSync(dirname(killed.path)), { timeout: patienceMs }).toBe(false)
    expect([living, next].map(({ path }) => existsSync(path))).toEqual([true, true])
  } finally {
    for (const { child } of [living, next]) child.kill('SIGKILL')
  }
})

test('a trial has its way out where the temporary folder is a link', async () => {
  await using folder = await tempDir()
  const link = join(folder.path, 'link')
  await symlink('/var/tmp', link)
  const url = new URL('../../../src/sandbox/fingerprint/fingerprint.ts', import.meta.url).href
  const code = `
    const { fingerprint } = await import('${url}')
    process.stdout.write(JSON.stringify((await fingerprint()).egressTrial))`
  const told = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    env: { ...process.env, TMPDIR: link },
  })
  expect(JSON.parse(told)).toMatchObject({ works: true })
})

test('a tool that builds no sandbox is found out, whatever it exits with', async () => {
  for (const tool of ['/bin/true', '/bin/false', '/nonexistent'])
    for (const attempt of [tryOnce, tryEgress])
      expect(await attempt(tool, await findInitBinary()), tool).toMatchObject({ works: false })
})

test.runIf(isRoot)(
  'root without the capabilities to become somebody else is told which it lacks',
  async () => {
    const url = (file: string): string =>
      new URL(`../../../src/sandbox/fingerprint/${file}`, import.meta.url).href
    const code = `
    const { fingerprint } = await import('${url('fingerprint.ts')}')
    const { diagnose } = await import('${url('diagnose.ts')}')
    process.stdout.write(JSON.stringify(diagnose(await fingerprint()).find(({ control }) => control === 'sandbox')))`
    const node = [process.execPath, '--input-type=module', '-e', code]
    const row = execFileSync('setpriv', ['--bounding-set', '-setuid,-setgid', ...node], { encoding: 'utf8' })
    expect(JSON.parse(row)).toMatchObject({
      ok: false,
      cause: expect.stringMatching(/^root lacks CAP_SETGID, CAP_SETUID: /),
    })
  },
)

test('a kernel that takes no rules for datagrams is said to, and a sandbox has its way out all the same', async () => {
  const url = new URL('../../../src/sandbox/fingerprint/fingerprint.ts', import.meta.url).href
  const diagnoseUrl = new URL('../../../src/sandbox/fingerprint/diagnose.ts', import.meta.url).href
  const code = `
    const { fingerprint } = await import('${url}')
    const { diagnose } = await import('${diagnoseUrl}')
    process.stdout.write(JSON.stringify(diagnose(await fingerprint())))`
  await using folder = await tempDir()
  const filter = join(folder.path, 'filter')
  const netfilter = [
    { arg: 0, mask: 0xffffffffn, is: [16n] },
    { arg: 2, mask: 0xffffffffn, is: [12n] },
  ]
  const open: Rule = { comment: '', when: [], action: 'allow' }
  const rules: Rule[] = [{ comment: '', when: netfilter, action: 'EPROTONOSUPPORT' }, open]
  await writeFile(
    filter,
    compileVerdicts(
      [{ name: 'socket', numbers: { x64: 41, arm64: 198 }, decidedBy: 'strict', rules }],
      arch,
      open,
    ),
  )
  const node = [process.execPath, '--input-type=module', '-e', code]
  // Not bwrap --seccomp: in a user's namespace / belongs to nobody, and no bubblewrap below it is trusted
  const filtered = compile(join(folder.path, 'filtered'), filteredSource)
  const all = execFileSync(filtered, [filter, ...node], { encoding: 'utf8' })
  const rows = (JSON.parse(all) as Diagnosis[]).filter(({ control }) => /egress|datagrams/.test(control))
  expect(rows.map(({ ok, isFatal }) => ({ ok, isFatal }))).toEqual([
    { ok: true, isFatal: false },
    { ok: false, isFatal: false },
  ])
})

/** FILTER PROGRAM ARGS: runs the program under the seccomp filter in the file, in the namespaces that it was started in. */
const filteredSource = String.raw`
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
  static struct sock_filter filter[4096];
  FILE *file = argc > 2 ? fopen(argv[1], "re") : NULL;
  struct sock_fprog program = {.filter = filter};
  if (file != NULL) program.len = fread(filter, sizeof *filter, 4096, file);
  if (program.len == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("filter");
    return 125;
  }
  execv(argv[2], argv + 2);
  perror(argv[2]);
  return 126;
}`
