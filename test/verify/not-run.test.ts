// Nothing passes by not running: a battery whose program is silent, dies on the way or never comes to an end is an error.
import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, renameSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answersIn } from '../../src/verify/lab/answers.ts'
import { deniedProbes } from '../../src/verify/battery/denied.ts'
import { modeProbes } from '../../src/verify/battery/mode.ts'
import { placedProbes } from '../../src/verify/battery/placed.ts'
import { isGreen, type ProbeResult, type Verification } from '../../src/verify/result.ts'
import { notShown } from '../../src/verify/unfinished.ts'
import type * as Verify from '../../src/verify/verify.ts'
import { compile } from '../support/compile.ts'
import { copyPackage, loadFrom } from '../support/other-build.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isSound, probe, verification } from '../support/verification.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))

/** In the place of the probes' program: becomes the launcher, holds what it is to hold, and asked for more than one thing does what a failure would. */
const stub = (failure: string): string => `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char line[16384];
  if (argc > 2 && strcmp(argv[1], "--before") == 0) {
    FILE *script = fopen(argv[2], "r");
    if (script == NULL || fgets(line, sizeof line, script) == NULL || fgets(line, sizeof line, script) == NULL) return 1;
    line[strcspn(line, "\\n")] = '\\0';
    argv[2] = line;
    return execv(line, argv + 2);
  }
  FILE *list = fopen(argv[argc - 1], "r");
  if (list != NULL && fgets(line, sizeof line, list) != NULL && strncmp(line, "hold-listeners", 14) == 0) {
    puts("{\\"outcome\\":\\"open\\",\\"ms\\":0,\\"text\\":\\"\\"}");
    fflush(stdout);
    while (getchar() != EOF) continue;
    return 0;
  }
  if (list == NULL || fgets(line, sizeof line, list) == NULL) return 0;
  ${failure}
  return 0;
}`

const someAnswers = `for (int i = 0; i < 30; i++) puts("{\\"outcome\\":\\"EPERM\\",\\"ms\\":0,\\"text\\":\\"\\"}");`

let folder: Awaited<ReturnType<typeof tempDir>>
beforeAll(async () => {
  folder = await tempDir()
})
afterAll(() => folder[Symbol.asyncDispose]())

/** The built package with another program in the place of the probes. */
const packageWith = async (name: string, failure: string): Promise<string> => {
  const at = await packageAt(name)
  compile(join(at, 'dist/libexec', process.arch, 'sallyport-probes'), stub(failure))
  return at
}

/** What the launcher is made of, compiled once: only what is linked differs. */
let objects: readonly string[] = []
const launcherObjects = async (): Promise<readonly string[]> => {
  if (objects.length > 0) return objects
  const [init, compiled] = [join(repository, 'sandbox/init'), join(folder.path, 'objects')]
  await mkdir(compiled)
  const sources = (await readdir(init)).filter((file) => file.endsWith('.c')).map((file) => join(init, file))
  execFileSync('cc', ['-std=c11', '-D_GNU_SOURCE', '-c', ...sources], { cwd: compiled })
  return (objects = (await readdir(compiled)).map((file) => join(compiled, file)))
}

/** The built package with a launcher that has this in the place of some calls of its own. */
const packageWithLauncher = async (
  name: string,
  source: string,
  replaced: readonly string[],
): Promise<string> => {
  const at = await packageAt(name)
  const [other, launcher] = [join(at, 'other.c'), join(at, 'dist/libexec', process.arch, 'sallyport-init')]
  await writeFile(other, source)
  const wrapped = replaced.map((call) => `-Wl,--wrap=${call}`)
  const flags = ['-std=c11', '-D_GNU_SOURCE', '-static', ...wrapped]
  execFileSync('cc', [...flags, '-o', launcher, ...(await launcherObjects()), other])
  return at
}

const packageAt = async (name: string): Promise<string> => {
  const at = await mkdtemp(join(folder.path, name))
  await copyPackage(at)
  return at
}

const verifyIn = async (at: string, options: Partial<Verify.VerifyOptions>): Promise<Verification> => {
  const { verifyProfile } = loadFrom(at, 'verify/verify.js') as typeof Verify
  const host = { env: { LANG: 'C.UTF-8' }, home: folder.path, uid: process.getuid?.() ?? -1 }
  return verifyProfile('offline', { host, isTriedOnce: true, ...options })
}

/** Launches that are planned, and not started: these are tried without the program. */
const planned = new Set([...deniedProbes, ...modeProbes, ...placedProbes].map(({ id }) => id))

/** Probes that passed, or that held as far as can be, though the program was to try them. */
const passed = ({ probes }: { probes: readonly Pick<ProbeResult, 'id' | 'verdict'>[] }): readonly string[] =>
  probes.filter(({ id, verdict }) => isGreen(verdict) && !planned.has(id)).map(({ id }) => id)

test('a program that says nothing: exit status 4, and no probe passed', async () => {
  const at = await packageWith('silent', '')
  const args = ['verify', '--profile', 'offline', '--format', 'json']
  const env = { HOME: folder.path, PATH: process.env['PATH'] }
  const child = spawn(process.execPath, [join(at, 'dist/cli/main.js'), ...args], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  const [out, status] = await Promise.all([text(child.stdout), ended])
  const { verifications } = JSON.parse(out) as {
    verifications: {
      verdict: string
      probes: Pick<ProbeResult, 'id' | 'verdict'>[]
      assertions: { verdict: string }[]
    }[]
  }
  const [found] = verifications
  expect([status, found?.verdict, found?.probes.length]).toEqual([4, 'error', expect.any(Number)])
  expect(found === undefined ? null : passed(found)).toEqual([])
  expect(new Set(found?.assertions.map(({ verdict }) => verdict))).toEqual(new Set(['error']))
})

test('a program that dies in the middle of an answer', async () => {
  const torn = String.raw`fputs("{\"outcome\":\"EPE", stdout); fflush(stdout); abort();`
  const found = await verifyIn(await packageWith('dies', `${someAnswers} ${torn}`), { patienceMs: 50_000 })
  expect([found.verdict, passed(found)]).toEqual(['error', []])
})

test('what was not answered is tried once more, and what became of the first try is said', async () => {
  const at = await packageWith('silent-once', '')
  const program = join(at, 'dist/libexec', process.arch, 'sallyport-probes')
  const stages: string[] = []
  const onProgress = (stage: string): void => {
    stages.push(stage)
    if (!stage.startsWith('once more')) return
    copyFileSync(join(repository, 'dist/libexec', process.arch, 'sallyport-probes'), `${program}-new`)
    renameSync(`${program}-new`, program)
  }
  // What else there is to try comes to the same, and takes its time twice.
  const controls = ['mount-plan', 'pid-namespace', 'seccomp'] as const
  const found = await verifyIn(at, { patienceMs: 100_000, isTriedOnce: false, controls, onProgress })
  expect(found.probes.length).toBeGreaterThan(30)
  expect(found.probes.filter(({ verdict }) => !isSound(verdict)).map(({ id }) => id)).toEqual([])
  expect(isGreen(found.verdict)).toBe(true)
  expect(found.earlier).toEqual([expect.stringContaining('files.shadow: stat /etc/shadow: not tried')])
  expect(stages.filter((stage) => stage === 'inside and outside')).toHaveLength(2)
})

test('what was seen open is a failure, and is not tried once more for what was not shown beside it', () => {
  const [error, fail] = [probe({ verdict: 'error', observed: 'late' }), probe({ verdict: 'fail' })]
  const lacking = (...probes: ProbeResult[]): string | null => notShown(verification({ probes }))
  expect(lacking(probe(), error)).toBe(`${error.id}: late`)
  expect([lacking(error, fail), lacking(fail), lacking(probe())]).toEqual([null, null, null])
})

test('a program that never comes to an end, when the time for all is over', async () => {
  const at = await packageWith('hangs', `${someAnswers} fflush(stdout); for (;;) pause();`)
  const found = await verifyIn(at, { patienceMs: 3000 })
  expect([found.verdict, found.probes, found.inspections.map(({ id, verdict }) => [id, verdict])]).toEqual([
    'error',
    [],
    [['run.complete', 'error']],
  ])
  expect(found.inspections[0]?.observed).toContain('it was not done within 3 s')
})

/** PID 1 that never learns of an end: at once, or where attempts are made. */
const endless = (condition: string): string => `
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>
pid_t __real_wait4(pid_t pid, int *status, int options, struct rusage *usage);
pid_t __wrap_wait4(pid_t pid, int *status, int options, struct rusage *usage) {
  return ${condition} ? 0 : __real_wait4(pid, status, options, usage);
}`

/** Leaves a process that holds every descriptor of a launch, out of its session; not for the two sandboxes in which a machine is tried. */
const holder = (counts: string): string => `
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((constructor)) static void hold(int argc, char **argv) {
  if (argc < 2 || strcmp(argv[1], "outer") != 0) return;
  int counts = open("${counts}", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (counts < 0 || write(counts, "+", 1) != 1 || lseek(counts, 0, SEEK_CUR) < 3) return;
  close(counts);
  pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    alarm(15);
    for (;;) pause();
  }
  waitpid(child, NULL, 0);
}`

/** Time for all in which a slow and busy machine is past its own trials too, ms. */
const untilTriedMs = 8000

describe('a sandbox that never comes to an end', () => {
  test('when the machine is tried is one that cannot be made', async () => {
    const found = await verifyIn(await packageWithLauncher('endless', endless('1'), ['wait4']), {
      patienceMs: 50_000,
    })
    expect([found.verdict, found.probes]).toEqual(['error', []])
    expect(found.inspections[0]?.observed).toMatch(/trial's sandbox is still there 5000 ms after/)
  })

  test('when it is told by nobody is ended once the time for all is over', async () => {
    const source = endless('access("/sallyport/attempts", F_OK) == 0')
    const found = await verifyIn(await packageWithLauncher('unheard', source, ['wait4']), {
      patienceMs: untilTriedMs,
    })
    expect([found.verdict, found.probes]).toEqual(['error', []])
    expect(found.inspections[0]?.observed).toMatch(
      /within 8 s, and had come to: inside and outside; see what/,
    )
  })

  test('even when it is told to is said to be there, with what was being done', async () => {
    const source = holder(join(folder.path, 'counts'))
    const found = await verifyIn(await packageWithLauncher('held', source, []), {
      patienceMs: untilTriedMs,
      graceMs: 100,
    })
    expect([found.verdict, found.probes]).toEqual(['error', []])
    expect(found.inspections[0]?.observed).toMatch(/had come to: inside and outside\. What was made there/)
  })
})

describe('answers are', () => {
  const line = (outcome: string): string => JSON.stringify({ outcome, text: '', ms: 1 })
  const read = (output: string, attempts: number): readonly string[] =>
    answersIn(output, attempts).map(({ outcome }) => outcome)

  test('those before the first line that is none', () => {
    expect(read(`${line('a')}\n${line('b')}\n`, 2)).toEqual(['a', 'b'])
    expect(read(`${line('a')}\nnonsense\n${line('b')}\n`, 3)).toEqual(['a'])
    expect(read(`${line('a')}\nnull\n`, 2)).toEqual(['a'])
    expect(read(`${line('a')}\n{"outcome":"b","ms":1}\n`, 2)).toEqual(['a'])
  })

  test('none where the last is torn, and none at all where there are more than were asked for', () => {
    expect(read(`${line('a')}\n${line('b')}`, 2)).toEqual(['a'])
    expect(read(`${line('a')}\n${line('b')}\n`, 1)).toEqual([])
  })
})
