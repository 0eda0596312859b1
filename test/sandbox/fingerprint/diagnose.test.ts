// Every way in which a host can fall short has its row, its cause and the command that mends it.
import { describe, expect, test } from 'vitest'
import {
  diagnose,
  requireEgress,
  requireSandbox,
  type Diagnosis,
  withDaemonLimits,
} from '../../../src/sandbox/fingerprint/diagnose.ts'
import type { Fingerprint } from '../../../src/sandbox/fingerprint/fingerprint.ts'
import type { Trial } from '../../../src/sandbox/fingerprint/trial.ts'
import { withoutDescriptors } from '../../support/no-descriptors.ts'
import { SallyportError } from '../../../src/errors.ts'
import type { KernelFacts } from '../../../src/sandbox/fingerprint/kernel-facts.ts'

const base = { version: 2, path: '/sys/fs/cgroup' } as const
const good: Fingerprint = {
  kernel: {
    release: '6.1.0',
    uid: 1000,
    procSys: true,
    unprivilegedUserns: 1,
    appArmorRestrictsUserns: null,
    maxUserNamespaces: 1000,
    seccompKills: true,
    missingCapabilities: [],
    inContainer: false,
    nprocPerNamespace: true,
    processTree: true,
  },
  bubblewrap: { path: '/usr/bin/bwrap', version: '0.8.0', refusal: null },
  init: { path: '/opt/sallyport-init' },
  trial: { works: true, tookMs: 12.3, status: 125 },
  egressTrial: { works: true, tookMs: 15.1, status: 0 },
  cgroups: {
    level: 'v2',
    bases: { memory: base, pids: base, cpu: base, kill: base },
    cause: null,
    mend: null,
  },
}
const failing = (stderr: string, kernel: Partial<KernelFacts> = {}): Fingerprint => ({
  ...good,
  kernel: { ...good.kernel, ...kernel },
  trial: { works: false, message: 'the sandbox could not be built', stderr },
})
const row = (found: Fingerprint, control: Diagnosis['control']): Diagnosis | undefined =>
  diagnose(found).find((each) => each.control === control)

test('a host that has everything is told what enforces each control', () => {
  expect(diagnose(good).map(({ control, ok, enforcedBy }) => `${control} ${ok} ${enforcedBy}`)).toEqual([
    'init true /opt/sallyport-init',
    'bubblewrap true /usr/bin/bwrap 0.8.0',
    'user namespaces true kernel 6.1.0',
    'system calls true seccomp',
    'sandbox true tried in 13 ms',
    'egress true tried in 16 ms',
    'datagrams true nf_tables',
    'memory true cgroup-v2',
    'pids true cgroup-v2',
    'cpu true cgroup-v2',
  ])
})

const shortfalls: readonly [string, Fingerprint, Diagnosis['control'], RegExp, RegExp][] = [
  [
    'no init',
    { ...good, init: { path: null, cause: 'not built' }, trial: null },
    'init',
    /not built/,
    /npm run setup/,
  ],
  [
    'no bubblewrap',
    { ...good, bubblewrap: null, trial: null },
    'bubblewrap',
    /not installed/,
    /apt-get install bubblewrap/,
  ],
  [
    'user namespaces at 0',
    failing('', { maxUserNamespaces: 0 }),
    'user namespaces',
    /is 0/,
    /sysctl -w user\.max_user/,
  ],
  [
    'Debian’s switch',
    failing('', { unprivilegedUserns: 0 }),
    'user namespaces',
    /clone is 0/,
    /sysctl -w kernel\.unpriv/,
  ],
  [
    'AppArmor',
    failing('bwrap: setting up uid map: Permission denied', { appArmorRestrictsUserns: 1 }),
    'user namespaces',
    /AppArmor .* uid 1000/,
    /apparmor_parser -r/,
  ],
  [
    'a kernel without namespaces',
    failing('', { maxUserNamespaces: null }),
    'user namespaces',
    /has no/,
    /CONFIG_USER_NS/,
  ],
  [
    'no seccomp',
    { ...good, kernel: { ...good.kernel, seccompKills: false } },
    'system calls',
    /no seccomp/,
    /CONFIG_SECCOMP/,
  ],
  ...(['user namespaces', 'system calls', 'sandbox'] as const).map((control): (typeof shortfalls)[number] => [
    `a /proc without /proc/sys, for ${control}`,
    failing("bwrap: Can't read /proc/sys/kernel/overflowuid: No such file or directory", {
      procSys: false,
      maxUserNamespaces: null,
      seccompKills: false,
      missingCapabilities: ['CAP_SETUID'],
    }),
    control,
    /^\/proc\/sys is not there/,
    /^start it where \/proc is mounted whole$/,
  ]),
  ...[
    'sallyport-init: staging: /tmp: No such file or directory',
    'bwrap: Failed to mount tmpfs: No such file or directory',
  ].map((said): (typeof shortfalls)[number] => [
    `no /tmp, as it says ${said}`,
    failing(said),
    'sandbox',
    /^\/tmp is not there/,
    /install -d -m 1777 \/tmp/,
  ]),
  [
    'a chroot',
    failing('bwrap: No permissions to create new namespace'),
    'sandbox',
    /namespaces are refused/,
    /outside of a chroot/,
  ],
  [
    'a masked /proc',
    failing("bwrap: Can't mount proc on /newroot/proc: Operation not permitted"),
    'sandbox',
    /new \/proc cannot be mounted/,
    /systempaths=unconfined/,
  ],
  [
    'a container’s filter',
    failing('bwrap: No permissions to create new namespace', { inContainer: true }),
    'sandbox',
    /namespaces are refused/,
    /seccomp=unconfined/,
  ],
  [
    'root of a user namespace only',
    failing('sallyport-init: identity: setgroups: Operation not permitted', { uid: 0 }),
    'sandbox',
    /root only of a user namespace/,
    /ordinary user/,
  ],
  [
    'root without capabilities',
    failing('sallyport-init: staging: mount namespace: Operation not permitted', {
      missingCapabilities: ['CAP_SYS_ADMIN'],
    }),
    'sandbox',
    /root lacks CAP_SYS_ADMIN/,
    /--cap-add/,
  ],
  ['anything else', failing('bwrap: something new'), 'sandbox', /^bwrap: something new$/, /kernel log/],
  ['silence', failing(''), 'sandbox', /^the sandbox could not be built$/, /kernel log/],
]

describe.each(shortfalls)('%s', (_, found, control, cause, mend) => {
  test('is named, with cause and mend', () => {
    expect(row(found, control)).toMatchObject({
      ok: false,
      enforcedBy: null,
      cause: expect.stringMatching(cause),
      mend: expect.stringMatching(mend),
    })
  })

  test('refuses every launch', () => {
    expect(() => requireSandbox(found)).toThrow(
      expect.objectContaining({ code: 'ERR_SANDBOX_UNENFORCEABLE' }),
    )
  })
})

test('limits that nothing holds firmly are not ok, with the reason, and refuse no launch by themselves', () => {
  const bases = { memory: null, pids: null, cpu: null, kill: null }
  const bare: Fingerprint = { ...good, cgroups: { level: 'none', bases, cause: 'why', mend: 'how' } }
  expect(row(bare, 'memory')).toMatchObject({ ok: false, enforcedBy: 'watchdog', cause: 'why', mend: 'how' })
  expect(row(bare, 'pids')).toMatchObject({ ok: true, enforcedBy: 'rlimit', cause: null })
  expect(row(bare, 'cpu')).toMatchObject({ ok: false, enforcedBy: null, cause: 'why' })
  expect(() => requireSandbox(bare)).not.toThrow()
})

test('limits of a daemon that runs in another group are what it holds them by, better or worse than here', () => {
  const bases = { memory: null, pids: null, cpu: null, kill: null }
  const bare: Fingerprint = { ...good, cgroups: { level: 'none', bases, cause: 'why', mend: 'how' } }
  const group = { memory: 'cgroup-v2', pids: 'cgroup-v2', cpu: 'cgroup-v2' }
  const none = { memory: 'watchdog', pids: 'rlimit', cpu: 'none' }
  const limitsOf = (rows: readonly Diagnosis[]) => rows.slice(-3)
  expect(withDaemonLimits(diagnose(bare), group)).toEqual(diagnose(good))
  expect(withDaemonLimits(diagnose(bare), none)).toEqual(diagnose(bare))
  expect(limitsOf(withDaemonLimits(diagnose(good), none))).toMatchObject([
    {
      ok: false,
      enforcedBy: 'watchdog',
      cause: expect.stringContaining('cgroup-v2'),
      mend: expect.stringContaining('serve'),
    },
    { ok: true, enforcedBy: 'rlimit', cause: null, mend: null },
    { ok: false, enforcedBy: null, cause: expect.stringContaining('cgroup-v2') },
  ])
})

describe('a network that is an allowlist', () => {
  const without = (stderr: string): Fingerprint => ({
    ...good,
    egressTrial: { works: false, message: 'the sandbox could not be built', stderr },
  })

  test.each([
    [
      'egress: packet socket (the sandbox tool must leave CAP_NET_RAW): Address family not supported',
      /CONFIG_PACKET/,
    ],
    ['egress: descriptors: the hard limit of open files is too low', /ulimit -Hn/],
    [
      'egress: route of IPv4 (the sandbox tool must leave CAP_NET_ADMIN): Operation not permitted',
      /kernel log/,
    ],
  ])('is refused by name where %s', (stderr, mend) => {
    const found = without(`sallyport-init: ${stderr}\n`)
    expect(row(found, 'egress')).toMatchObject({
      ok: false,
      isFatal: false,
      mend: expect.stringMatching(mend),
    })
    expect(() => requireEgress(found)).toThrow(
      expect.objectContaining({
        code: 'ERR_SANDBOX_UNENFORCEABLE',
        message: expect.stringContaining(stderr),
        details: expect.objectContaining({ control: 'egress' }),
      }),
    )
    // Servers without a network go on.
    expect(() => requireSandbox(found)).not.toThrow()
  })

  test('is not there where no sandbox is', () => {
    const found = { ...failing('nothing works'), egressTrial: null }
    expect(row(found, 'egress')).toMatchObject({ ok: false, cause: 'no sandbox can be built' })
  })

  test('is let through where it was tried', () => {
    expect(() => requireEgress(good)).not.toThrow()
  })
})

test('a kernel without nf_tables is told what is missing, and refuses nothing', () => {
  const found: Fingerprint = { ...good, egressTrial: { works: true, tookMs: 15.1, status: 1 } }
  expect(row(found, 'datagrams')).toMatchObject({
    ok: false,
    isFatal: false,
    cause: expect.stringContaining('waits for an answer that never comes'),
    mend: expect.stringContaining('modprobe -a nf_tables'),
  })
  expect(() => requireEgress(found)).not.toThrow()
})

test('what a trial had no descriptor or process for is no lack of this host: that is told, and held against no server', async () => {
  const tried = JSON.parse(await withoutDescriptors('trial')) as Trial
  expect(tried).toMatchObject({ works: false, isUnsettled: true })
  const shortage = new SallyportError('ERR_SHORTAGE', 'the launcher of trial could not be started: EMFILE')
  const short = { works: false, message: shortage.message, stderr: '', isUnsettled: true, shortage } as const
  expect(() => requireSandbox({ ...good, trial: short, egressTrial: null })).toThrow(shortage)
  expect(() => requireEgress({ ...good, egressTrial: short })).toThrow(shortage)
})
