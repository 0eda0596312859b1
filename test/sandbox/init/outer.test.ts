// The outer launcher on the host's side of the wall: what crosses, as whom, and what the rest of the machine can see of it.
import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { compile } from '../../support/compile.ts'
import { frame } from '../../support/init-frames.ts'
import {
  buildInit,
  fakeTool,
  handOver,
  ids,
  InitProcess,
  initOrders,
  isRoot,
  launch,
  outcome,
  outerOrders,
  run,
  shell,
} from '../../support/init-sandbox.ts'
import { tempDir } from '../../support/temp-dir.ts'

const binary = buildInit()
const descriptors = shell('ls -1 /proc/self/fd | tr "\\n" " "')

it('passes no descriptor that leaked into the daemon', async () => {
  const orders = [...outerOrders(), ...initOrders(descriptors)]
  // 8 to 207 are open in the launcher, as if the daemon had forgotten close-on-exec on all of them.
  await using sandbox = new InitProcess(binary, ['outer'], { fds: 200 })
  // 3 is the folder that ls reads.
  expect((await outcome(sandbox.send(...orders))).stdout).toBe('0 1 2 3 ')
})

it('a program that is started without the launcher has them all', async () => {
  await using bare = new InitProcess('/usr/bin/sh', ['-c', 'ls -1 /proc/self/fd | wc -l >&5'], { fds: 200 })
  expect(Number((await outcome(bare)).stdout)).toBeGreaterThan(200)
})

it('shows other users neither arguments, nor environment, nor data', async () => {
  await using running = launch(shell('sleep 60'), { bwrap: ['--setenv', 'SECRET', 'canary-in-arguments'] })
  await running.report('S')
  const monitor = `/proc/${running.child.pid}`
  expect(readFileSync(`${monitor}/cmdline`, 'utf8')).toMatch(
    /^bwrap\0--args\0\d+\0--\0\/sallyport\/init\0init\0$/,
  )
  expect(readFileSync(`${monitor}/environ`, 'utf8')).toBe('')
})

it('runs the tool with the ids that were ordered, no group, no capability and no way to new ones', async () => {
  await using sandbox = launch(shell('sleep 60'))
  await sandbox.report('S')
  const status = readFileSync(`/proc/${sandbox.child.pid}/status`, 'utf8')
  const line = (name: string): string =>
    new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)?.[1]?.trim() ?? ''
  expect(line('Uid')).toBe(`${ids.uid}\t${ids.uid}\t${ids.uid}\t${ids.uid}`)
  expect(line('Gid')).toBe(`${ids.gid}\t${ids.gid}\t${ids.gid}\t${ids.gid}`)
  if (isRoot) expect(line('Groups')).toBe('')
  expect([line('CapInh'), line('CapPrm'), line('CapEff'), line('CapAmb')]).toEqual(
    Array(4).fill('0'.repeat(16)),
  )
  expect(line('NoNewPrivs')).toBe('1')
  expect(line('Umask')).toBe('0077')
  expect(line('SigIgn')).toBe('0'.repeat(16))
})

it('gives the sandbox a session, and a score by which the kernel ends it before the daemon', async () => {
  const { stdout } = await run(shell('cut -d" " -f5,6 /proc/self/stat; cat /proc/self/oom_score_adj'))
  // Group and session of the server itself, which is pid 2, not of anything outside (0).
  expect(stdout).toBe('2 2\n500\n')
})

it('leaves the daemon’s session keyring behind', async () => {
  await using folder = await tempDir()
  const keys = compile(join(folder.path, 'keys'), planting)
  const extra = [frame('f', 0o755, '/tmp/keys', readFileSync(keys))]
  // `plant` puts a key into a session keyring and becomes the launcher, as a daemon with keys would.
  await using sandbox = new InitProcess(keys, ['plant', binary, 'outer'])
  sandbox.send(...outerOrders(), ...initOrders({ argv: ['/tmp/keys', 'search'], extra }))
  expect((await outcome(sandbox)).stdout).toBe('absent\n')
  // Without the launcher's step the key goes everywhere.
  expect(execFileSync(keys, ['plant', keys, 'search'], { encoding: 'utf8' })).toBe('found\n')
})

const planting = String.raw`
#define _GNU_SOURCE
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
  if (strcmp(argv[1], "search") == 0)
    return puts(syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", "canary", 0) > 0 ? "found" : "absent"), 0;
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0) < 0) return perror("join"), 1;
  if (syscall(SYS_add_key, "user", "canary", "value", 5, KEY_SPEC_SESSION_KEYRING) < 0) return perror("add"), 1;
  return execv(argv[2], argv + 2), 1;
}`

it('hands the tool the listed descriptors and one memory file, whatever was open', async () => {
  await using fake = await fakeTool('readlink /proc/$$/fd/7; ls -1 /proc/$$/fd; true')
  await using process = new InitProcess(binary, ['outer'], { fds: 200 })
  const { diagnostics } = await outcome(process.send(...handOver(fake.path)))
  const [memory, ...numbers] = diagnostics.trimEnd().split('\n')
  expect(memory).toBe('/memfd:sallyport (deleted)')
  // The shell keeps its script on 10.
  expect(numbers.map(Number).toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 10])
})

it('hands the tool memory that nobody changes any more', async () => {
  await using fake = await fakeTool(
    'cd /proc/$$/fd; (printf x > 7) || echo refused; (printf x >> 7) || echo refused; tr "\\0" "|" < 7; echo',
  )
  const orders = [frame('u', ids.uid, ids.gid), frame('b', fake.path), frame('a', '--one'), frame('x')]
  await using process = new InitProcess(binary, ['outer'])
  const { diagnostics } = await outcome(process.send(...orders))
  expect(diagnostics.match(/^(refused|--one.*)$/gm)).toEqual(['refused', 'refused', '--one|'])
})

it('starts the tool at the root, in a session of its own', async () => {
  await using fake = await fakeTool('pwd; cut -d" " -f1,6 /proc/$$/stat')
  await using process = new InitProcess(binary, ['outer'])
  const { diagnostics } = await outcome(process.send(...handOver(fake.path)))
  const { pid } = process.child
  expect(diagnostics).toBe(`/\n${pid} ${pid}\n`)
})

it('hands the tool no signal for the end of the daemon', async () => {
  await using folder = await tempDir()
  chmodSync(folder.path, 0o755)
  const tool = compile(join(folder.path, 'tool'), askingForSignal)
  await using process = new InitProcess(binary, ['outer'])
  expect((await outcome(process.send(...handOver(tool)))).diagnostics).toBe('0\n')
})

const askingForSignal = String.raw`
#include <stdio.h>
#include <sys/prctl.h>
int main(void) {
  int number = -1;
  prctl(PR_GET_PDEATHSIG, &number);
  return fprintf(stderr, "%d\n", number), 0;
}`

it('hands the tool no privilege to come by, and no group', async () => {
  await using fake = await fakeTool(
    'grep -E "^(NoNewPrivs|Groups|CapInh|CapAmb)" /proc/$$/status | tr -s " \\t" " "',
  )
  const groups = [
    '/usr/bin/setpriv',
    '--groups',
    '4,27',
    '--inh-caps',
    '+net_raw',
    '--ambient-caps',
    '+net_raw',
  ]
  const [file = '', ...args] = isRoot ? [...groups, binary, 'outer'] : [binary, 'outer']
  await using process = new InitProcess(file, args)
  const { diagnostics } = await outcome(process.send(...handOver(fake.path)))
  const zero = '0'.repeat(16)
  expect(diagnostics).toContain('NoNewPrivs: 1\n')
  expect(diagnostics).toContain(`CapInh: ${zero}\n`)
  expect(diagnostics).toContain(`CapAmb: ${zero}\n`)
  if (isRoot) expect(diagnostics).toMatch(/^Groups: ?$/m)
})

it('refuses a setuid or setgid sandbox tool by name', async () => {
  await using fake = await fakeTool('true')
  for (const mode of [0o4755, 0o2755]) {
    chmodSync(fake.path, mode)
    await using process = new InitProcess(binary, ['outer'])
    const { code, diagnostics } = await outcome(process.send(...handOver(fake.path)))
    expect({ code, diagnostics }).toEqual({
      code: 125,
      diagnostics: expect.stringContaining('setuid or setgid'),
    })
  }
})
