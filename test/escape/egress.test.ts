// A server with granted names reaches exactly these, by programs that know of no proxy; all else fails at once, and is told.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { chmod, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openTestDoor } from '../support/sandbox-door.ts'
import { openTestServers, type TestServers } from '../support/egress-servers.ts'
import type { BubblewrapPlan } from '../../src/sandbox/bubblewrap/driver.ts'
import { egressPlan, type EgressOutcome, type EgressRequest, tryInside } from '../support/egress.ts'
import { engineOrWhy } from '../support/engine.ts'
import { daemons, withoutFilter, withoutOption } from '../support/escape.ts'
import type { SandboxSpec } from '../../src/sandbox/spec.ts'
import { mountOf, planOf, run } from '../support/plan.ts'
import { buildProbe } from '../support/probe.ts'
import { tempDir } from '../support/temp-dir.ts'

let servers: TestServers
const canaries: Server[] = []
let canary = 0
let canary6 = 0

beforeAll(async () => {
  servers = await openTestServers()
  for (const address of ['127.0.0.1', '::1', null]) {
    const server = createServer((socket) => socket.on('error', () => socket.destroy()).end('canary'))
    canaries.push(server)
    if (address === null) server.listen('\0sallyport-egress-canary')
    else server.listen(0, address)
    await once(server, 'listening')
  }
  ;[canary = 0, canary6 = 0] = canaries.slice(0, 2).map((server) => (server.address() as AddressInfo).port)
})

afterAll(async () => {
  for (const server of canaries) server.close()
  await servers[Symbol.asyncDispose]()
})

const probe = buildProbe('dial')
const ca = '/trusted/ca.pem'
const tools = '/tools'

type Way = 'root' | 'user' | 'container'

const inside = async (way: Way, request: Partial<EgressRequest>): Promise<EgressOutcome> => {
  const found = way === 'container' ? await engineOrWhy() : null
  return tryInside(way === 'user' ? 'user' : 'root', {
    script: '',
    ...(found !== null && 'environment' in found ? { engine: found.environment } : {}),
    names: {
      'api.example.test:443': servers.https,
      'api.example.test:80': servers.http,
      'git.example.test:443': servers.https,
      '*.wild.example.test:443': servers.https,
    },
    mounts: { [servers.trusted]: dirname(ca), [dirname(probe)]: tools },
    ...request,
  })
}

/** Shell word for the pid of the relay, which is not the same number in every sandbox. */
const relay = `$(grep -l '^Name:.egress' /proc/[0-9]*/status | cut -d/ -f3)`

const node = '"$(readlink /proc/$PPID/exe)"'
const programs: Readonly<Record<string, string>> = {
  'Node’s fetch': `NODE_EXTRA_CA_CERTS=${ca} ${node} -e 'fetch("https://api.example.test/").then(async (r) => process.stdout.write(await r.text()))'`,
  'Node’s https': `NODE_EXTRA_CA_CERTS=${ca} ${node} -e 'require("https").get("https://api.example.test/", (r) => r.pipe(process.stdout))'`,
  'Python’s urllib': `SSL_CERT_FILE=${ca} /usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("https://api.example.test/").read().decode(), end="")'`,
  curl: `curl -sS --cacert ${ca} https://api.example.test/`,
  'a static C program': `${tools}/dial api.example.test 80 | tail -1`,
}

/** Asks the resolver itself for the address of each name, and prints them as /etc/hosts has them. */
const pythonAsking = (...names: readonly string[]): string => `/usr/bin/python3 -c '
import socket, struct
for name in "${names.join(' ')}".split():
  asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
  asker.sendto(struct.pack(">6H", 7, 256, 1, 0, 0, 0) + labels + struct.pack(">B2H", 0, 1, 1), ("127.0.0.53", 53))
  print(socket.inet_ntoa(asker.recv(512)[-4:]), name)
'`

/** Each kind as the probe names it: its errno, and the notice of family, type and protocol. */
const kinds: Readonly<Record<string, readonly [errno: string, notice: string]>> = {
  raw: ['EPROTONOSUPPORT', 'socket 2 3 1'],
  raw6: ['EPROTONOSUPPORT', 'socket 10 3 58'],
  ping: ['EPROTONOSUPPORT', 'socket 2 2 1'],
  mptcp: ['EPROTONOSUPPORT', 'socket 2 1 262'],
  vsock: ['EAFNOSUPPORT', 'socket 40 1 0'],
  packet: ['EAFNOSUPPORT', 'socket 17 3 0'],
  'packet-of-init': ['EAFNOSUPPORT', 'socket 17 2 0'],
  netfilter: ['EPROTONOSUPPORT', 'socket 16 3 12'],
  'netfilter-of-init': ['EPROTONOSUPPORT', 'socket 16 3 12'],
  sctp: ['EPROTONOSUPPORT', 'socket 2 1 132'],
  udplite: ['EPROTONOSUPPORT', 'socket 2 2 136'],
}

const ways: readonly (readonly [who: string, way: Way])[] = [
  ...daemons.map((daemon) => [`under a daemon of ${daemon}`, daemon] as const),
  ['in a container', 'container'],
]

describe.each(ways)('%s', (_, daemon) => {
  beforeEach(async ({ skip }) => {
    const found = daemon === 'container' ? await engineOrWhy() : {}
    if ('missing' in found) skip(String(found.missing))
  })

  test.each(Object.entries(programs))('%s reaches a granted name', async (_, script) => {
    const { stdout, stderr, lines } = await inside(daemon, { script })
    expect({ stdout, stderr }).toEqual({ stdout: 'hello from api.example.test\n', stderr: '' })
    expect(lines.filter((line) => line.startsWith('SP1 connect'))).toHaveLength(1)
  })

  test('git clones over https', async () => {
    const { stdout, stderr } = await inside(daemon, {
      script: `cd /tmp && GIT_SSL_CAINFO=${ca} git clone -q https://git.example.test/repo.git it && git -C it log --format=%s`,
    })
    expect({ stdout, stderr }).toEqual({ stdout: 'the commit that was cloned\n', stderr: '' })
  })

  test('a name that a wildcard matches is reached when it is first seen', async () => {
    const names = ['a.wild.example.test', 'b.wild.example.test', 'a.wild.example.test']
    const { stdout, lines } = await inside(daemon, {
      script: names.map((name) => `curl -sS --cacert ${ca} https://${name}/`).join('; '),
    })
    expect(stdout).toBe(names.map((name) => `hello from ${name}\n`).join(''))
    expect(lines.filter((line) => line !== 'SP1 notices')).toEqual(
      names.map((name) => `SP1 connect ${name} 443`),
    )
  })

  test('an exact name has the same address in /etc/hosts as from the resolver, and no other name stands there', async () => {
    const { stdout, stderr } = await inside(daemon, {
      script: `sed -n 's/^198/198/p' /etc/hosts; ${pythonAsking('api.example.test', 'git.example.test')}`,
    })
    const [first, second, ...asked] = stdout.trim().split('\n')
    expect([first, second]).toEqual(['198.18.0.1 api.example.test', '198.18.0.2 git.example.test'])
    expect({ asked, stderr }).toEqual({ asked: [first, second], stderr: '' })
  })

  test('every other way fails within a second, and is told', async () => {
    const tries: readonly (readonly [command: string, saw: RegExp, notice: string | null])[] = [
      [`${tools}/dial evil.example.test 80`, /^getaddrinfo /, '^name evil\\.example\\.test 1$'],
      [`${tools}/dial wild.example.test 443`, /^getaddrinfo /, '^name wild\\.example\\.test 1$'],
      [`${tools}/dial metadata.google.internal 80`, /^getaddrinfo /, '^name metadata\\.google\\.internal 1$'],
      [`${tools}/dial api.example.test 8080`, /^connect ECONNREFUSED$/, '^tcp 198\\.18\\.0\\.\\d+ 8080$'],
      [`${tools}/dial git.example.test 80`, /^connect ECONNREFUSED$/, '^tcp 198\\.18\\.0\\.\\d+ 80$'],
      [`${tools}/dial tcp 192.0.2.1 443`, /^tcp ECONNREFUSED$/, '^tcp 192\\.0\\.2\\.1 443$'],
      [`${tools}/dial tcp 169.254.169.254 80`, /^tcp ECONNREFUSED$/, '^tcp 169\\.254\\.169\\.254 80$'],
      [`${tools}/dial tcp 198.19.0.77 443`, /^tcp ECONNREFUSED$/, '^tcp 198\\.19\\.0\\.77 443$'],
      [`${tools}/dial tcp 2001:db8::1 443`, /^tcp E(CONNREFUSED|NETUNREACH)$/, '^tcp 2001:db8::1 443$'],
      [`${tools}/dial tcp 127.0.0.1 ${canary}`, /^tcp ECONNREFUSED$/, `^tcp 127\\.0\\.0\\.1 ${canary}$`],
      [`${tools}/dial tcp ::1 ${canary6}`, /^tcp ECONNREFUSED$/, `^tcp ::1 ${canary6}$`],
      [`${tools}/dial sendto 192.0.2.1 53 query`, /^sendto EPERM$/, '^udp 192\\.0\\.2\\.1 53$'],
      [`${tools}/dial sendto 198.18.0.1 443 quic`, /^sendto EPERM$/, '^udp 198\\.18\\.0\\.1 443$'],
      [`${tools}/dial sendto 2001:db8::1 443 quic`, /^sendto EPERM$/, '^udp 2001:db8::1 443$'],
      [`${tools}/dial sendto 240.0.0.1 53 query`, /^sendto EPERM$/, '^udp 240\\.0\\.0\\.1 53$'],
      [`${tools}/dial sendto 224.0.0.251 5353 query`, /^sendto EPERM$/, '^udp 224\\.0\\.0\\.251 5353$'],
      [`${tools}/dial sendto ff02::fb 5353 query`, /^sendto EPERM$/, '^udp ff02::fb 5353$'],
      [`${tools}/dial sendto 127.0.0.1 53 query`, /^sendto EPERM$/, '^udp 127\\.0\\.0\\.1 53$'],
      [`${tools}/dial sendto ::1 53 query`, /^sendto EPERM$/, '^udp ::1 53$'],
      [`${tools}/dial udp 192.0.2.1 53 query`, /^udp ECONNREFUSED$/, '^udp 192\\.0\\.2\\.1 53$'],
      [`${tools}/dial udp 192.0.2.1 443 quic`, /^udp ECONNREFUSED$/, '^udp 192\\.0\\.2\\.1 443$'],
      [`${tools}/dial udp 2001:db8::1 443 quic`, /^udp ECONNREFUSED$/, '^udp 2001:db8::1 443$'],
    ]
    const { stdout, notices } = await inside(daemon, {
      script: `now() { date +%s%N; }\n${tries
        .map(([command]) => `from=$(now); ${command}; echo "$((($(now) - from) / 1000000)) ms"`)
        .join('\n')}`,
      awaited: tries.flatMap(([, , notice]) => notice ?? []),
    })
    const said = stdout.trim().split('\n')
    for (const [index, [command, saw]] of tries.entries()) {
      expect(said[index * 2], command).toMatch(saw)
      expect(Number.parseInt(said[index * 2 + 1] ?? ''), command).toBeLessThan(1000)
    }
    expect(notices.length).toBeGreaterThanOrEqual(tries.length)
  })

  test('a connection that the kernel ends before there is a packet is told of', async () => {
    const tries = [
      'fe80::1 443',
      'ff02::1 443',
      '::ffff:224.0.0.1 443',
      '224.0.0.1 443',
      '255.255.255.255 443',
    ]
    const hidden =
      'import ctypes, socket; ctypes.CDLL(None).prctl(4, 0); s = socket.socket(socket.AF_UNIX); s.connect("/nowhere/near/the/door")'
    const [brief, abstract] = ['"/run/nobody1"', 'b"\\0no@bo dy"'].map(
      (it) => `import socket; socket.socket(socket.AF_UNIX).connect(${it})`,
    )
    const relative = 'import socket; socket.socket(socket.AF_UNIX).connect("no\\nwhere")'
    const sent = [
      'import socket as s; s.socket(s.AF_UNIX, s.SOCK_DGRAM).sendto(b"x", "/run/nobody22")',
      'import socket as s; s.socket().sendto(b"x", 0x20000000, ("224.0.0.3", 80))',
    ]
    const { stdout, notices } = await inside(daemon, {
      script: `cd /tmp; ${tries.map((it) => `${tools}/dial tcp ${it}`).join('; ')}; ${tools}/dial udp 224.0.0.2 5353 query
${[relative, hidden, brief, abstract, ...sent].map((it) => `/usr/bin/python3 -c '${it}' 2>&1 | tail -1`).join('; ')}`,
      awaited: [
        ...tries.map((it) => `^tcp ${it}$`),
        '^tcp 224.0.0.2 5353$',
        '^local /run/nobody1$',
        '^local .x00no.x40bo.x20dy$',
        '^local no.x0awhere$',
        '^local -$',
        '^local /run/nobody22$',
        '^tcp 224.0.0.3 80$',
      ],
    })
    expect(stdout).toMatch(
      /^(tcp E(NETUNREACH|INVAL)\n){5}udp E(NETUNREACH|INVAL)\n(FileNotFoundError.*\n){3}ConnectionRefusedError.*\nFileNotFoundError.*\nOSError/,
    )
    expect(notices).toHaveLength(12)
  })

  test('what its programs say to each other over unix sockets and IPv6 is nobody’s business', async () => {
    const talk = `import socket as s, os
a = s.socket(s.AF_UNIX); a.bind("/tmp/own"); a.listen(300); os.chdir("/tmp")
for _ in range(100): s.socket(s.AF_UNIX).connect("/tmp/own"); s.socket(s.AF_UNIX).connect("own")
c = s.socket(s.AF_UNIX); c.bind("\\0own\\0name"); c.listen(); s.socket(s.AF_UNIX).connect("\\0own\\0name")
d = s.socket(s.AF_UNIX, s.SOCK_DGRAM); d.bind("/tmp/d"); s.socket(s.AF_UNIX, s.SOCK_DGRAM).sendto(b"x", "/tmp/d"); d.recv(1)
b = s.socket(s.AF_INET6); b.bind(("::1", 5400)); b.listen(); s.socket(s.AF_INET6).connect(("::1", 5400)); print("talked")`
    const { stdout, notices } = await inside(daemon, { script: `/usr/bin/python3 -c '${talk}'` })
    expect(stdout).toBe('talked\n')
    expect(notices).toEqual([])
  })

  test('no other kind of socket is there, not even the one that PID 1 opened, and who asks is told of', async () => {
    const { stdout, notices } = await inside(daemon, {
      script: `from=$(date +%s%N); ${tools}/dial kinds; echo "$((($(date +%s%N) - from) / 1000000)) ms"`,
      awaited: Object.values(kinds).map(([, notice]) => `^${notice}$`),
    })
    const lines = stdout.trim().split('\n')
    expect(lines.slice(0, -1)).toEqual(Object.entries(kinds).map(([name, [errno]]) => `${name} ${errno}`))
    expect(Number.parseInt(lines.at(-1) ?? '')).toBeLessThan(1000)
    expect(notices).toEqual(Object.values(kinds).map(([, notice]) => notice))
  })

  test('nobody else can listen to what is refused, and let it go on', async () => {
    const { stdout } = await inside(daemon, { script: `${tools}/dial listener; ${tools}/dial kinds` })
    expect(stdout).toMatch(/^listener EBUSY\nraw EPROTONOSUPPORT\n/)
  })

  test('what its programs say to each other by datagram, on ports that they can take, arrives and is nobody’s business', async () => {
    const talk =
      'import socket as s; a = s.socket(s.AF_INET, s.SOCK_DGRAM); a.bind(("127.0.0.1", 5300)); b = s.socket(s.AF_INET, s.SOCK_DGRAM); b.sendto(b"x", ("127.0.0.1", 5300)); print(a.recv(9))'
    const { stdout, notices } = await inside(daemon, { script: `/usr/bin/python3 -c '${talk}'` })
    expect(stdout).toBe("b'x'\n")
    expect(notices).toEqual([])
  })

  test('a name is found by who asks for what this machine could speak', async () => {
    const { stdout } = await inside(daemon, {
      script: `${tools}/dial configured api.example.test; ${tools}/dial configured x.wild.example.test; ${tools}/dial configured evil.example.test`,
    })
    expect(stdout).toMatch(/^configured found\nconfigured found\nconfigured (?!found)/)
  })

  test('another sandbox’s door, and the host’s abstract sockets, are not to be found, and who asks for a door is told of', async () => {
    await using other = await openTestDoor()
    const connect = (path: string): string =>
      `/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(${path})' 2>&1 | tail -1`
    const { stdout, notices } = await inside(daemon, {
      awaited: ['^local /', '^local .x00'],
      script: [
        connect(`"${other.path}"`),
        connect('b"\\0sallyport-egress-canary"'),
        connect('"/sallyport/egress"'),
      ].join('; '),
    })
    const [door, abstract, ...own] = stdout.trim().split('\n')
    expect(notices).toEqual([`local ${other.path}`, 'local \\x00sallyport-egress-canary'])
    expect(door).toMatch(/^FileNotFoundError/)
    expect(abstract).toMatch(/^ConnectionRefusedError/)
    expect(own).toEqual([])
    expect(other.lines).toEqual([])
  })

  test('relay and server have no capability in any set, and the relay none of the server’s secrets', async () => {
    const sets = 'Cap(Inh|Prm|Eff|Bnd|Amb)'
    const { stdout } = await inside(daemon, {
      script: `r=${relay}; for p in 1 $r self; do grep -E '^(Name|${sets}|NoNewPrivs):' /proc/$p/status; done; ls /proc/$r/fd 2>&1; cat /proc/$r/environ 2>&1 | tail -1`,
    })
    expect(stdout).toContain('Name:\tegress\n')
    expect([...stdout.matchAll(new RegExp(`${sets}:\\t(.*)`, 'g'))].map(([, , set]) => set)).toEqual(
      Array.from({ length: 15 }, () => '0'.repeat(16)),
    )
    expect(stdout.match(/NoNewPrivs:\t1/g)).toHaveLength(3)
    expect(stdout.match(/Permission denied/g)).toHaveLength(2)
  })

  test.each(['KILL', 'STOP'])(
    'a server that sends SIG%s to the relay ends its own sandbox, with a reason',
    async (signal) => {
      const { exit } = await inside(daemon, { script: `kill -${signal} ${relay}; sleep 30` })
      expect(exit).toEqual({ code: null, signal: null, reason: 'egress-lost' })
    },
  )

  test('the proxy variables are there for those who look for them', async () => {
    const { stdout, lines } = await inside(daemon, {
      script: 'env | grep -i proxy | sort; curl -sS -m 5 http://api.example.test/ || true',
      keepsProxy: true,
    })
    expect(stdout).toContain('HTTPS_PROXY=http://127.0.0.1:3128\n')
    expect(stdout.trim().split('\n')).toHaveLength(6)
    expect(lines).toContain('SP1 proxy')
  })

  test('where nothing is granted the network has no door, no resolver and no relay', async () => {
    const { stdout, lines } = await inside(daemon, {
      script: `ls /sallyport | grep -vE '^(control|counters)$'; grep nameserver /etc/resolv.conf; echo "relay: ${relay}"; ${tools}/dial api.example.test 80`,
      isEmpty: true,
    })
    expect(stdout).toMatch(/^bin\ninit\nrelay: \ngetaddrinfo /)
    expect(lines).toEqual([])
  })
})

/** What a script meets behind a door where one thing is taken away, and what was told of it. */
const withoutControl = async (
  program: readonly string[],
  remove: (plan: BubblewrapPlan) => Partial<BubblewrapPlan>,
  more: Partial<SandboxSpec> = {},
): Promise<{ readonly stdout: string; readonly notices: readonly string[] }> => {
  await using door = await openTestDoor()
  const plan = await egressPlan(door, ['api.example.test:443'], 'probe-exec.mjs', ['/tools/dial', ...program])
  const tools = mountOf(dirname(probe), '/tools')
  const spec = { ...plan.spec, mounts: [...plan.spec.mounts, tools], ...more }
  const again = await planOf(plan.spec.program.argv, { spec })
  const { stdout } = await run({ ...again, ...remove(again) })
  return { stdout: stdout.trim(), notices: [...door.notices] }
}

// A share whose server never says a word, so that whoever looks into it waits. It takes root to have one.
const mute = `import ctypes, os, sys
device, libc, at = os.open("/dev/fuse", os.O_RDWR), ctypes.CDLL(None), sys.argv[1].encode()
assert libc.mount(b"mute", at, b"fuse", 6, b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % device) == 0
print("mounted", flush=True); sys.stdin.read(); libc.umount2(at, 2)`

describe.each(daemons.filter((daemon) => daemon === 'root'))('under a daemon of %s', (daemon) => {
  test('a path on a share that hangs is told, and the next connection does not wait for it', async () => {
    await using folder = await tempDir()
    const share = join(folder.path, 'share')
    await chmod(folder.path, 0o755)
    await mkdir(share)
    const server = spawn('python3', ['-c', mute, share], { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(server.stdout, 'data')
    try {
      const connect = (path: string): string =>
        `/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("${path}")'`
      const { stdout, notices } = await inside(daemon, {
        script: `${connect('/data/share/door')} & sleep 0.2; ${connect('/nowhere')} 2>&1 | tail -1`,
        mounts: { [folder.path]: '/data' },
        awaited: ['^local /data/share/door$', '^local /nowhere$'],
      })
      expect(stdout).toMatch(/^FileNotFoundError/)
      expect(notices).toEqual(['local /data/share/door', 'local /nowhere'])
    } finally {
      server.stdin.end()
      await once(server, 'exit')
    }
  })
})

describe('a broken arm', () => {
  test('bare, the canaries are reached', async () => {
    for (const [address, port] of [
      ['127.0.0.1', canary],
      ['::1', canary6],
    ] as const) {
      const { stdout } = await promisify(execFile)(probe, ['tcp', address, String(port)])
      expect(stdout).toBe('tcp open\n')
    }
  })

  test('without the first filter the watched one keeps every kind out by itself, and tells', async () => {
    const { stdout, notices } = await withoutControl(['kinds'], withoutFilter)
    expect(stdout.split('\n')).toEqual(Object.entries(kinds).map(([name, [errno]]) => `${name} ${errno}`))
    expect(notices).toContain('socket 16 3 12')
  })

  test('where a profile allows every socket neither filter keeps them out, but for the kinds that PID 1 opens', async () => {
    const syscalls = { base: 'strict', allow: ['socket'], deny: [] } as const
    const { stdout } = await withoutControl(['kinds'], () => ({}), { syscalls })
    expect(stdout).toContain('packet-of-init EAFNOSUPPORT')
    expect(stdout).toContain('packet EAFNOSUPPORT')
    expect(stdout).toContain('netfilter EPROTONOSUPPORT')
    expect(stdout).toContain('udplite open')
    // These need a capability, and there is none.
    expect(stdout).toContain('raw EPERM')
  })

  test('bare, a program listens to its own system calls', async () => {
    const { stdout } = await promisify(execFile)(probe, ['listener'])
    expect(stdout).toBe('listener open\n')
  })

  test('in the host’s network the canary is reached, and nothing is told', async () => {
    await using door = await openTestDoor()
    const plan = await egressPlan(door, [], 'probe-exec.mjs', [
      '/tools/dial',
      'tcp',
      '127.0.0.1',
      String(canary),
    ])
    const shared = {
      ...plan.spec,
      network: { mode: 'none' } as const,
      mounts: [...plan.spec.mounts, mountOf(dirname(probe), '/tools')],
    }
    const broken = await planOf(plan.spec.program.argv, { spec: shared })
    const { stdout } = await run({ ...broken, ...withoutOption('--unshare-net')(broken) })
    expect(stdout).toBe('tcp open\n')
    const { stdout: whole, notices } = await withoutControl(['tcp', '127.0.0.1', String(canary)], () => ({}))
    expect(whole).toBe('tcp ECONNREFUSED')
    expect(notices).toContain(`tcp 127.0.0.1 ${canary}`)
  })

  test.each(['CAP_NET_ADMIN', 'CAP_NET_RAW', 'CAP_NET_BIND_SERVICE'])(
    'a sandbox whose init lacks %s is refused, not used without what it is for',
    async (capability) => {
      const remove = ({ arguments: all }: BubblewrapPlan): Partial<BubblewrapPlan> => {
        const place = all.indexOf(capability)
        return { arguments: all.filter((_, index) => index !== place && index !== place - 1) }
      }
      await expect(withoutControl(['kinds'], remove)).rejects.toMatchObject({
        code: 'ERR_SANDBOX_SETUP',
        message: expect.stringContaining('egress: '),
      })
    },
  )
})
