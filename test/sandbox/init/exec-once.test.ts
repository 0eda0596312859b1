// `one exec only`: the server is the only program that its sandbox ever runs, whatever it executes, guesses or loads.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { auditArch, runBpf, verdict } from '../../support/bpf.ts'
import { compile } from '../../support/compile.ts'
import { frame } from '../../support/init-frames.ts'
import { run, shell } from '../../support/init-sandbox.ts'
import { tempDir } from '../../support/temp-dir.ts'

it('a server runs, and can execute nothing, itself included', async () => {
  const script =
    'echo running; /usr/bin/true; echo $?; (exec /usr/bin/sh -c true); echo $?; . /dev/null; echo alive'
  const { stdout, stderr, code } = await run(shell(script, { oneExec: true }))
  expect({ stdout, code }).toEqual({ stdout: 'running\n126\n126\nalive\n', code: 0 })
  expect(stderr).toContain('/usr/bin/true: Operation not permitted')
})

it('without the option it can', async () => {
  const script = 'echo running; /usr/bin/true; echo $?; (exec /usr/bin/sh -c true); echo $?'
  expect((await run(shell(script))).stdout).toBe('running\n0\n0\n')
})

it('a script with an interpreter is one program', async () => {
  const extra = [frame('f', 0o755, '/tmp/script', Buffer.from('#!/usr/bin/sh\necho $0 $1; /usr/bin/true\n'))]
  const { stdout, stderr } = await run({ argv: ['/tmp/script', 'argument'], extra, oneExec: true })
  expect(stdout).toBe('/tmp/script argument\n')
  expect(stderr).toContain('Operation not permitted')
})

it('keeps argv and environment whole', async () => {
  const server = shell('echo $0 $1 $A', { oneExec: true, env: { A: 'b c' } })
  expect((await run({ ...server, argv: [...server.argv, 'zero', 'one'] })).stdout).toBe('zero one b c\n')
})

it('says why a program could not be executed', async () => {
  const { code, reports } = await run({ argv: ['/nonexistent'], oneExec: true })
  expect({ code, errno: reports.at(-1)?.payload.readUInt32LE(0) }).toEqual({ code: 127, errno: 2 })
})

it('no form of execveat is a way around it', async () => {
  await using folder = await tempDir()
  const extra = [frame('f', 0o755, '/tmp/try', readFileSync(compile(join(folder.path, 'try'), attempts)))]
  const confined = await run({ argv: ['/tmp/try'], extra, oneExec: true })
  expect(confined.stdout).toBe(
    'execve 1\nexecveat 1\nexecveat empty 1\nexecveat fd 1\nmapped guess 1\nthread 1\n',
  )
  // Free, the first attempt replaces the program: the attempts are real ones.
  expect((await run({ argv: ['/tmp/try'], extra })).stdout).toBe('executed\n')
})

it('the one call that is let through is compared in every bit that the kernel reads', async () => {
  await using folder = await tempDir()
  const [numbers = '', filter = ''] = execFileSync(compile(join(folder.path, 'ticket'), ticket), {
    encoding: 'utf8',
  }).split('\n')
  const [execve = 0n, execveat = 0n, read = 0n, ...taken] = numbers.split(' ').map(BigInt)
  const own = auditArch[process.arch === 'arm64' ? 'arm64' : 'x64']
  const answer = (nr: bigint, args: readonly bigint[] = taken, arch: number = own): number =>
    runBpf(Buffer.from(filter, 'hex'), { nr: Number(nr), arch, args })
  expect(taken).toHaveLength(5)
  expect(answer(execveat)).toBe(verdict.allow)
  // The kernel reads the folder and the flags as 32 bits, the three pointers whole.
  const wrong = [32, 64, 64, 64, 32].flatMap((bits, index) =>
    Array.from({ length: bits }, (_, bit) =>
      taken.map((value, at) => (at === index ? value ^ (1n << BigInt(bit)) : value)),
    ),
  )
  expect(wrong.filter((args) => answer(execveat, args) !== verdict.errno(1))).toEqual([])
  expect([answer(execve), answer(read)]).toEqual([verdict.errno(1), verdict.allow])
  expect(answer(read, taken, auditArch.i386)).toBe(verdict.kill)
  expect(answer(0x40000000n | read)).toBe(verdict.kill)
})

// The product's own code with its calls of the kernel told in their place: the numbers of three calls and the arguments of the
// one that executes, then the filter.
const ticket = String.raw`
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static struct sock_filter kept[4096];
static unsigned kept_count;
static long told(long number, ...) {
  va_list more;
  va_start(more, number);
  if (number == SYS_seccomp) {
    (void)va_arg(more, int), (void)va_arg(more, int);
    const struct sock_fprog *program = va_arg(more, const struct sock_fprog *);
    for (kept_count = 0; kept_count < program->len; kept_count++) kept[kept_count] = program->filter[kept_count];
    return 0;
  }
  printf("%d %d %d %u", SYS_execve, SYS_execveat, SYS_read, (unsigned)va_arg(more, int));
  for (int at = 0; at < 3; at++) printf(" %llu", (unsigned long long)va_arg(more, void *));
  printf(" %d\n", va_arg(more, int));
  for (size_t at = 0; at < kept_count * sizeof kept[0]; at++) printf("%02x", ((unsigned char *)kept)[at]);
  return putchar('\n'), 0;
}
#define syscall told
#include "${fileURLToPath(new URL('../../../sandbox/init/ticket.c', import.meta.url))}"
_Noreturn void die(const char *step, const char *object, int error) { (void)step, (void)object, exit(error); }
_Noreturn void refuse(const char *step, const char *object, const char *why) { (void)step, (void)object, (void)why, exit(1); }
int main(void) { return exec_once("/program", (char *[]){"a", 0}, (char *[]){"b", 0}); }`

// Prints each attempt's errno; an attempt that works ends the list with what the new program prints.
const attempts = String.raw`
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static char *args[] = {"/usr/bin/echo", "executed", 0}, *env[] = {0};
static void *thread(void *_) { errno = 0; syscall(SYS_execveat, AT_FDCWD, args[0], args, env, 0); printf("thread %d\n", errno); fflush(stdout); return 0; }
int main(void) {
  setvbuf(stdout, 0, _IONBF, 0);
  errno = 0; execve(args[0], args, env); printf("execve %d\n", errno);
  errno = 0; syscall(SYS_execveat, AT_FDCWD, args[0], args, env, 0); printf("execveat %d\n", errno);
  int fd = open(args[0], O_PATH);
  errno = 0; syscall(SYS_execveat, fd, "", args, env, AT_EMPTY_PATH); printf("execveat empty %d\n", errno);
  int dir = open("/usr/bin", O_PATH | O_DIRECTORY);
  errno = 0; syscall(SYS_execveat, dir, "echo", args, env, 0); printf("execveat fd %d\n", errno);
  char *page = mmap((void *)0x123456780000, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  errno = 0; syscall(SYS_execveat, AT_FDCWD, page, page + 8, page + 16, 0); printf("mapped guess %d\n", errno);
  pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0);
  return 0;
}`
