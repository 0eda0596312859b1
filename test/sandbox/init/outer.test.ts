// The outer launcher on the host's side of the wall: what crosses, as whom, and what the rest of the machine can see of it.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { compile } from '../../support/compile.ts'
import { frame } from '../../support/init-frames.ts'
import {
  buildInit,
  closedFolder,
  copyInit,
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

/** A sandbox tool of the test's own, where the dropped user can execute it: it says on stderr what it was given. */
const tool = async (script: string): Promise<AsyncDisposable & { readonly path: string }> => {
  const folder = await tempDir()
  chmodSync(folder.path, 0o755)
  const path = join(folder.path, 'tool')
  writeFileSync(path, `#!/bin/sh\nexec >&2\n${script}\n`, { mode: 0o755 })
  return { path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

/** Lines of mountinfo without those of a container engine, which come and go with its containers while this test runs. */
const mountsIn = (mountinfo: string): readonly string[] =>
  mountinfo
    .split('\n')
    .filter((line) => !/docker|containerd|overlay2|\/tmp\/[^/]+\/[de](\/| )/.test(line.split(' - ')[0] ?? ''))

const handOver = (path: string): Buffer[] => [frame('u', ids.uid, ids.gid), frame('b', path), frame('x')]

it('hands the tool the listed descriptors and one memory file, whatever was open', async () => {
  await using fake = await tool('readlink /proc/$$/fd/7; ls -1 /proc/$$/fd; true')
  await using process = new InitProcess(binary, ['outer'], { fds: 200 })
  const { diagnostics } = await outcome(process.send(...handOver(fake.path)))
  const [memory, ...numbers] = diagnostics.trimEnd().split('\n')
  expect(memory).toBe('/memfd:sallyport (deleted)')
  // The shell keeps its script on 10.
  expect(numbers.map(Number).toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 10])
})

it('hands the tool no privilege to come by, and no group', async () => {
  await using fake = await tool(
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
  await using fake = await tool('true')
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

describe.runIf(isRoot)('as root', () => {
  it('reaches sources and its own binary below a folder that only root may search', async () => {
    using folder = closedFolder()
    writeFileSync(join(folder.path, 'file'), 'from a closed folder')
    const init = copyInit(folder.path)
    const { stdout, code, diagnostics } = await run(shell('cat /data/file'), {
      init,
      binds: { [folder.path]: '/data' },
    })
    expect({ stdout, code, diagnostics }).toEqual({
      stdout: 'from a closed folder',
      code: 0,
      diagnostics: '',
    })
  })

  it('could not reach them without staging', async () => {
    using folder = closedFolder()
    const unstaged = outerOrders({ bwrap: ['--ro-bind', folder.path, '/data'] })
    await using process = new InitProcess(binary, ['outer'])
    process.send(...unstaged, ...initOrders(shell('true')))
    const { code, diagnostics } = await outcome(process)
    expect(code).not.toBe(0)
    expect(diagnostics).toContain('Permission denied')
  })

  it('stages single files, sources below /tmp and folders with mounts in them', async () => {
    using folder = closedFolder()
    const file = join(folder.path, 'single')
    const mounted = join(folder.path, 'tree', 'mounted')
    mkdirSync(mounted, { recursive: true })
    writeFileSync(file, 'one file')
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', mounted])
    try {
      writeFileSync(join(mounted, 'deep'), 'deep file')
      const binds = { [file]: '/single', [join(folder.path, 'tree')]: '/tree' }
      const { stdout } = await run(shell('cat /single /tree/mounted/deep'), { binds })
      expect(stdout).toBe('one filedeep file')
    } finally {
      execFileSync('umount', [mounted])
    }
  })

  it('shows the host none of its mounts, and leaves none', async () => {
    const before = mountsIn(readFileSync('/proc/self/mountinfo', 'utf8'))
    await using sandbox = launch(shell('sleep 60'))
    await sandbox.report('S')
    expect(mountsIn(readFileSync('/proc/self/mountinfo', 'utf8'))).toEqual(before)
    sandbox.hangUp()
    await sandbox.ended
    expect(mountsIn(readFileSync('/proc/self/mountinfo', 'utf8'))).toEqual(before)
  })

  it('shows its mounts to no namespace whose mounts are shared', async () => {
    // After the sandbox the namespace that it was started in says what it has.
    const script = '"$0" outer; code=$?; cat /proc/self/mountinfo >&2; exit $code'
    const shared = ['--mount', '--propagation', 'shared', '/usr/bin/sh', '-c', script, binary]
    await using process = new InitProcess('/usr/bin/unshare', shared)
    process.send(...outerOrders(), ...initOrders(shell('exit 3')))
    const { code, diagnostics } = await outcome(process)
    expect(code).toBe(3)
    expect(diagnostics).toContain('shared:')
    expect(mountsIn(diagnostics).filter((line) => line.includes('sallyport'))).toEqual([])
  })

  it('joins every cgroup before anything of the sandbox runs', async () => {
    const folders = ['memory', 'pids']
      .map((name) => `/sys/fs/cgroup/${name}`)
      .concat('/sys/fs/cgroup')
      .filter((path) => readdirSync(path).includes('cgroup.procs'))
      .map((path) => join(path, `sp-test-${process.pid}`))
    expect(folders.length).toBeGreaterThan(0)
    for (const folder of folders) mkdirSync(folder)
    try {
      await using sandbox = launch(shell('exec sleep 60'), {
        // By each of the two files, where there are both.
        cgroups: folders.map((path, index) =>
          join(path, index === 0 && existsSync(join(path, 'tasks')) ? 'tasks' : 'cgroup.procs'),
        ),
      })
      await sandbox.report('S')
      // bubblewrap's monitor, PID 1 and the server.
      for (const folder of folders)
        expect(readFileSync(join(folder, 'cgroup.procs'), 'utf8').trim().split('\n')).toHaveLength(3)
      sandbox.hangUp()
      await sandbox.ended
    } finally {
      for (const folder of folders) await eventually(() => (rmdirSync(folder), true))
    }
  })

  it('reports the device and inode of what was mounted, 0 and the errno for what is not there', async () => {
    using folder = closedFolder()
    const { dev, ino } = statSync(folder.path, { bigint: true })
    const targets = [frame('t', '/data'), frame('t', '/nonexistent'), frame('t', '/bin')]
    await using process = new InitProcess(binary, ['outer'])
    process.send(
      ...outerOrders({ binds: { [folder.path]: '/data' } }),
      ...targets,
      ...initOrders(shell('true')),
    )
    const ready = await process.report('R')
    expect([ready.readBigUInt64LE(0), ready.readBigUInt64LE(8), ready.readUInt32LE(16)]).toEqual([
      dev,
      ino,
      0,
    ])
    expect([ready.readBigUInt64LE(20), ready.readBigUInt64LE(28), ready.readUInt32LE(36)]).toEqual([
      0n,
      0n,
      2,
    ])
    // A symlink is reported as itself, never as what it points at.
    expect(ready.readBigUInt64LE(48)).not.toBe(statSync('/usr/bin', { bigint: true }).ino)
    await process.ended
  })

  it('lets the dropped user write where a source is theirs, and nowhere else', async () => {
    using folder = closedFolder()
    const script = shell('touch /data/file; echo $?')
    expect((await run(script, { binds: { [folder.path]: '/data' } })).stdout).toBe('1\n')
    chownSync(folder.path, ids.uid, ids.gid)
    expect((await run(script, { binds: { [folder.path]: '/data' } })).stdout).toBe('0\n')
    expect(statSync(join(folder.path, 'file'))).toMatchObject({ uid: ids.uid, gid: ids.gid, mode: 0o100644 })
  })
})
