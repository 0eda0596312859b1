// `one exec only`: the server is the only program that its sandbox ever runs, whatever it executes, guesses or loads.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
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
}, 15_000)

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
