// Who is below a process is told of the living, however many others end meanwhile.
import { execFileSync, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { childrenOf, identify } from '../../src/sandbox/proof.ts'
import { compile } from '../support/compile.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, ordinaryUid } from '../support/user.ts'

// Each round: children that end soon, and behind them in the kernel's list one that stays until a byte comes.
const parentOfMany = `
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  char byte;
  do {
    for (int i = 0; i < 24; i++)
      if (fork() == 0) { usleep(300 + 100 * i); _exit(0); }
    pid_t stays = fork();
    if (stays == 0) { pause(); _exit(0); }
    printf("%d\\n", stays);
    fflush(stdout);
    for (int i = 0; i < 24; i++) wait(NULL);
    if (read(0, &byte, 1) != 1) byte = 0;
    kill(stays, SIGKILL);
    wait(NULL);
  } while (byte);
}`

test('a child that lives is never missed while others before it end', async () => {
  await using folder = await tempDir()
  const parent = spawn(compile(join(folder.path, 'parent-of-many'), parentOfMany), {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const { pid = 0 } = parent
  let readings = 0
  let rounds = 0
  for await (const line of createInterface(parent.stdout)) {
    const stays = Number(line)
    const missed = []
    for (const until = performance.now() + 4; performance.now() < until; readings++)
      if (!childrenOf(pid).some((child) => child.pid === stays)) missed.push(identify(stays))
    expect(missed, `round ${rounds}`).toEqual([])
    parent.stdin.write(++rounds === 150 ? '\0' : 'x')
  }
  expect(rounds).toBe(150)
  expect(readings).toBeGreaterThan(rounds)
})

test.runIf(isRoot).each([1, 2])(
  'one whom a proc mounted with hidepid=%i hides is nobody’s own',
  (hidepid) => {
    const code = `
    import { spawn } from 'node:child_process'
    import { isOwn } from ${JSON.stringify(new URL('../../src/sandbox/proof.ts', import.meta.url).href)}
    const own = spawn('sleep', ['60'])
    console.log(JSON.stringify([own.pid, Number(process.argv[1])].map((pid) => isOwn(pid, process.pid))))
    own.kill()`
    const stranger = spawn('sleep', ['60'], { uid: ordinaryUid, gid: ordinaryUid })
    try {
      // With neither this capability nor the group of root, root sees no more of others than anybody.
      const group = ['--regid', String(ordinaryUid), '--clear-groups']
      const bare = ['setpriv', ...group, '--bounding-set', '-sys_ptrace', process.execPath]
      const inside = `mount -t proc -o hidepid=${hidepid} proc /proc && exec "$@"`
      const args = [
        '--mount',
        'sh',
        '-c',
        inside,
        'sh',
        ...bare,
        '--input-type=module',
        '-e',
        code,
        String(stranger.pid),
      ]
      expect(JSON.parse(execFileSync('unshare', args, { encoding: 'utf8' }))).toEqual([true, false])
    } finally {
      stranger.kill('SIGKILL')
    }
  },
)
