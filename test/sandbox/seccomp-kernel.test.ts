// The real kernel under the real filter: a C probe and the programs that servers are made of.
import { spawnSync } from 'node:child_process'
import { accessSync, closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileSeccomp } from '../../src/sandbox/seccomp.ts'
import type { SyscallPolicy } from '../../src/sandbox/spec.ts'
import type { Arch } from '../../src/sandbox/syscalls.ts'
import { asOrdinaryUser, buildProbe } from '../support/probe.ts'
import { patienceMs } from '../support/patience.ts'

const strict: SyscallPolicy = { base: 'strict', allow: [], deny: [] }
const folder = mkdtempSync(join(tmpdir(), 'sallyport-seccomp-'))
let probe = ''
beforeAll(() => {
  probe = buildProbe('calls')
})
afterAll(() => {
  rmSync(folder, { recursive: true })
})

interface Result {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command in new namespaces, with a filter or, as the control, without. */
function confined(
  command: readonly string[],
  policy: SyscallPolicy | null,
  drop: boolean,
  network: 'none' | 'allowlist' = 'none',
): Result {
  const filter = join(folder, 'filter.bpf')
  writeFileSync(filter, policy === null ? '' : compileSeccomp(policy, process.arch as Arch, network))
  const fd = openSync(filter, 'r')
  const options = [
    '--unshare-all',
    '--die-with-parent',
    '--cap-drop',
    'ALL',
    '--ro-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
  ]
  const scratch = ['--tmpfs', '/mnt', '--chdir', '/mnt']
  const bwrap = [
    'bwrap',
    ...options,
    ...scratch,
    ...(policy === null ? [] : ['--seccomp', '3']),
    '--',
    ...command,
  ]
  const [program = '', ...args] = drop ? asOrdinaryUser(bwrap) : bwrap
  const env = { PATH: process.env['PATH'], HOME: '/mnt', TMPDIR: '/mnt' }
  const got = spawnSync(program, args, {
    stdio: ['ignore', 'pipe', 'pipe', fd],
    env,
    encoding: 'utf8',
    timeout: patienceMs,
  })
  closeSync(fd)
  return got
}

function answers(
  policy: SyscallPolicy | null,
  network: 'none' | 'allowlist' = 'none',
): Record<string, string> {
  const { stdout, stderr } = confined([probe], policy, true, network)
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => /^(.*) (\S+)$/.exec(line)?.slice(1) ?? [line, stderr])
  return Object.fromEntries(rows) as Record<string, string>
}

/** What the filter must answer; everything else in the probe must be as without it. */
const refused: Record<string, string> = {
  'clone with a user namespace': 'EPERM',
  'clone with high bits and a user namespace': 'EPERM',
  clone3: 'ENOSYS',
  'unshare user': 'EPERM',
  'unshare fs': 'EPERM',
  setns: 'EPERM',
  io_uring_setup: 'ENOSYS',
  bpf: 'EPERM',
  perf_event_open: 'EPERM',
  userfaultfd: 'EPERM',
  ptrace: 'EPERM',
  process_vm_readv: 'EPERM',
  pidfd_getfd: 'EPERM',
  kcmp: 'EPERM',
  keyctl: 'EPERM',
  add_key: 'EPERM',
  mount: 'EPERM',
  open_by_handle_at: 'EPERM',
  memfd_secret: 'EPERM',
  mbind: 'EPERM',
  shmget: 'EPERM',
  mq_open: 'EPERM',
  statmount: 'ENOSYS',
  'renice PID 1': 'EPERM',
  'renice PID 1 with high bits': 'EPERM',
  'renice the user': 'EPERM',
  'pin PID 1': 'EPERM',
  'limits of PID 1': 'EPERM',
  'limits of another number': 'EPERM',
  'socket mptcp': 'EPROTONOSUPPORT',
  'socket udplite': 'EPROTONOSUPPORT',
  'socket raw': 'EPROTONOSUPPORT',
  'socket uevent': 'EPROTONOSUPPORT',
  'socket vsock': 'EAFNOSUPPORT',
  'socket vsock with high bits': 'EAFNOSUPPORT',
  'socket alg': 'EAFNOSUPPORT',
  'socket packet': 'EAFNOSUPPORT',
  'socketpair tipc': 'EAFNOSUPPORT',
  'fcntl F_SETLEASE': 'EPERM',
  'fcntl F_SETLEASE with high bits': 'EPERM',
  'fcntl F_SETDELEG': 'EPERM',
  'ioctl TIOCSTI': 'EPERM',
  'ioctl TIOCSTI with high bits': 'EPERM',
  'ioctl TIOCLINUX': 'EPERM',
  'personality no randomization': 'EPERM',
  'prctl PR_SET_MM': 'EPERM',
  'create a setuid file': 'EPERM',
  'chmod setuid': 'EPERM',
  'make a device': 'EPERM',
  ...(process.arch === 'x64' ? { 'x32 getpid': 'SIG31', int80: 'SIG31' } : {}),
}

/** What a kernel without calls of i386 does to whoever comes to their gate, before any filter is asked. */
const noGate = { int80: 'SIG11' }

/** Refusals that the kernel gives by itself where it lacks the feature, is set so, or the caller lacks a capability. */
const maybeAnyway = [
  'bpf', // kernel.unprivileged_bpf_disabled, as Debian sets it
  'socket alg',
  'socketpair tipc',
  'prctl PR_SET_MM',
  'perf_event_open',
  'memfd_secret',
  'userfaultfd',
]

describe('under the strict filter', () => {
  test('every dangerous call is refused by the filter, which the same sandbox without it shows, and nothing else changes', () => {
    const [bare, filtered] = [answers(null), answers(strict)]
    expect(filtered).toEqual({ ...bare, ...refused, ...(bare['int80'] === noGate.int80 && noGate) })
    for (const [name, answer] of Object.entries(refused))
      if (!maybeAnyway.includes(name)) expect(bare[name], `${name} without the filter`).not.toBe(answer)
  })

  test('behind a door that nobody listens at, every socket is refused that it refuses anywhere', () => {
    const found = answers(strict, 'allowlist')
    const sockets = Object.keys(refused).filter((name) => name.startsWith('socket '))
    expect(sockets).toHaveLength(8)
    expect(found).toEqual({
      ...answers(strict),
      ...Object.fromEntries(sockets.map((name) => [name, 'ENOSYS'])),
    })
  })

  test('a profile opens one call and shuts another', () => {
    const changed = answers({ base: 'strict', allow: ['ptrace'], deny: ['getpid'] })
    expect(changed).toMatchObject({ ptrace: 'ok', getpid: 'EPERM', 'socket tcp': 'ok' })
  })
})

const programs: readonly (readonly [name: string, command: readonly string[]])[] = [
  [
    'node',
    [
      process.execPath,
      '--input-type=module',
      '-e',
      `
      import { Worker } from 'node:worker_threads'; import { spawnSync } from 'node:child_process'; import { once } from 'node:events'
      import fs from 'node:fs'; import net from 'node:net'; import http from 'node:http'; import os from 'node:os'; import dgram from 'node:dgram'
      await once(new Worker('1', { eval: true }), 'exit')
      if (spawnSync('/bin/true').status !== 0) process.exit(2)
      fs.watch('.').close(); fs.writeFileSync('f', 'x'); fs.chmodSync('f', 0o600); fs.cpSync('f', 'g'); await fs.promises.rm('g')
      await once(net.createServer().listen('./s'), 'listening'); os.networkInterfaces(); os.setPriority(5)
      const server = http.createServer((_, reply) => reply.end('hi')).listen(0, '127.0.0.1'); await once(server, 'listening')
      if (await (await fetch('http://127.0.0.1:' + server.address().port)).text() !== 'hi') process.exit(3)
      await new Promise((done) => dgram.createSocket('udp4').bind(0, done)); process.exit(0)`,
    ],
  ],
  ['npm', ['npm', '--offline', 'init', '-y']],
  [
    'python3',
    [
      'python3',
      '-c',
      `
import asyncio, multiprocessing, os, shutil, sqlite3, ssl, subprocess, tempfile, threading
t = threading.Thread(target=print); t.start(); t.join()
multiprocessing.Lock() if os.access('/dev/shm', os.W_OK) else None
asyncio.run(asyncio.sleep(0)); sqlite3.connect('db').execute('create table t(x)'); ssl.create_default_context()
subprocess.run(['true'], check=True); d = tempfile.mkdtemp(); shutil.copytree(d, d + 'x')`,
    ],
  ],
  ['git', ['git', 'init', '-q', '/mnt/repo']],
  ['git', ['git', '-c', 'user.name=a', '-c', 'user.email=a@b.c', 'init', '--shared', '-q', 'shared']],
  [
    'perl',
    [
      'perl',
      '-e',
      'my $p = fork // die; exit 0 unless $p; waitpid $p, 0; open my $f, ">", "x" or die; print `echo hi`',
    ],
  ],
  ['curl', ['curl', '--silent', 'file:///proc/version']],
]

const installed = programs.filter(([name]) =>
  (process.env['PATH'] ?? '').split(delimiter).some((path) => {
    try {
      accessSync(join(path, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  }),
)

describe('ordinary programs', () => {
  test.each(installed)('%s works under the strict filter', (_, command) => {
    const { status, stderr } = confined(command, strict, false)
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  })
})
