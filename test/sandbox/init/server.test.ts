// PID 1 and the server that it starts: what the server is given, what it can't reach, and what is said about its end.
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { constants } from 'node:os'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { frame } from '../../support/init-frames.ts'
import { inParallel, isRoot, launch, run, shell } from '../../support/init-sandbox.ts'
import { buildProbe } from '../../support/probe.ts'

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)

/** All that a process may write to, as it is now. */
const memoryOf = (pid: number): Buffer => {
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  try {
    const places = readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)
    return Buffer.concat(
      [...places].map(([, from, to]) => {
        const [start, end] = [BigInt(`0x${from}`), BigInt(`0x${to}`)]
        const bytes = Buffer.alloc(Number(end - start))
        return bytes.subarray(0, readSync(memory, bytes, 0, bytes.length, start))
      }),
    )
  } finally {
    closeSync(memory)
  }
}

describe('the server', () => {
  it('gets argv, environment and folder exactly', async () => {
    const script = 'printf "%s|" "$0" "$@"; tr "\\0" "|" < /proc/self/environ; pwd'
    const argv = ['/usr/bin/sh', '-c', script, 'zero', '', 'new\nline', 'ünï']
    const { stdout } = await run({ argv, env: { EMPTY: '', TEXT: 'a b=c\n' }, cwd: '/usr/lib' })
    expect(stdout).toBe('zero||new\nline|ünï|PATH=/usr/bin|EMPTY=|TEXT=a b=c\n|/usr/lib\n')
  })

  it('may have an argv[0] that is not its program', async () => {
    const { stdout } = await run({ argv: ['name', '-c', 'echo $0'], program: '/usr/bin/sh' })
    expect(stdout).toBe('name\n')
  })

  it('has 128 KiB in one variable and 900 arguments', async () => {
    const long = 'x'.repeat(131_000)
    const many = Array.from({ length: 900 }, (_, index) => `${index}`)
    const server = { argv: ['/usr/bin/sh', '-c', 'echo ${#LONG} $#', 'sh', ...many], env: { LONG: long } }
    expect((await run(server)).stdout).toBe('131000 900\n')
  })

  it('has its three streams and no other descriptor', async () => {
    const { stdout, stderr } = await run(shell('ls -1 /proc/self/fd | tr "\\n" " "; echo to stderr >&2'))
    expect({ stdout, stderr }).toEqual({ stdout: '0 1 2 3 ', stderr: 'to stderr\n' })
  })

  it('reads its stdin to the end', async () => {
    await using sandbox = launch(shell('cat'))
    sandbox.stdin.end('line\n')
    expect((await sandbox.ended).code).toBe(0)
    expect(sandbox.stdout().toString()).toBe('line\n')
  })

  it('shows the end of its output although the server and PID 1 live on', async () => {
    await using sandbox = launch(shell('exec >&- 2>&-; sleep 60'))
    await sandbox.outputEnded
    expect(sandbox.child.exitCode).toBe(null)
  })

  it('has no capability in any set, no new privileges, no blocked and no ignored signal', async () => {
    const { stdout } = await run(
      shell('grep -E "^(Cap|NoNewPrivs|Sig(Blk|Ign)|ShdPnd)" /proc/self/status | tr "\\t" " "'),
    )
    const zero = '0'.repeat(16)
    expect(stdout.split('\n')).toEqual([
      `ShdPnd: ${zero}`,
      `SigBlk: ${zero}`,
      `SigIgn: ${zero}`,
      ...['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}: ${zero}`),
      'NoNewPrivs: 1',
      '',
    ])
  })

  it('gets files with their exact content and mode, whatever the umask', async () => {
    const files = [
      frame('f', 0o640, '/tmp/text', Buffer.from('text\0with nul\n')),
      frame('f', 0o777, '/tmp/empty'),
      frame('f', 0o400, '/tmp/secret', Buffer.alloc(70_000, 'x')),
    ]
    const script = 'stat -c "%a %s %n" /tmp/*; od -c /tmp/text | head -1'
    expect((await run(shell(script, { extra: files }))).stdout).toBe(
      '777 0 /tmp/empty\n400 70000 /tmp/secret\n640 14 /tmp/text\n0000000   t   e   x   t  \\0   w   i   t   h       n   u   l  \\n\n',
    )
  })

  it('can queue no signal for PID 1, which would count as its own no more', async () => {
    const { stdout } = await run(
      shell('for n in 40 41 42; do kill -$n 1; done; grep -h SigQ /proc/1/status | tr "\\t" " "'),
    )
    expect(stdout).toBe('SigQ: 0/0\n')
  })

  it('is under its limits, and PID 1 is not', async () => {
    const extra = [frame('l', constants.priority.PRIORITY_NORMAL + 7, 32n, 64n), frame('l', 4, 0n, 0n)]
    const script = 'ulimit -n; ulimit -Hn; ulimit -c; grep -E "open files" /proc/1/limits | tr -s " "'
    const [soft, hard, core, init] = (await run(shell(script, { extra }))).stdout.split('\n')
    expect([soft, hard, core]).toEqual(['32', '64', '0'])
    expect(init).not.toContain('64')
  })

  it('can’t make a user namespace once the counter is 0, nor raise the counter', async () => {
    const script =
      'unshare -U true; echo $?; cat /proc/sys/user/max_user_namespaces; echo 9 > /proc/sys/user/max_user_namespaces'
    const closed = await run(shell(script, { extra: [frame('n', 'max_user_namespaces', 0n)] }))
    expect(closed.stdout).toBe('1\n0\n')
    expect(closed.stderr).toContain('No space left on device')
    expect(closed.stderr).toContain('Permission denied')
    // Without the counter it can: the refusal above is the counter's.
    expect((await run(shell('unshare -U true; echo $?'))).stdout).toBe('0\n')
  })
})

describe('PID 1', () => {
  it('lets the server read nothing of it', async () => {
    const names = ['environ', 'maps', 'mem', 'auxv', 'io', 'stack', 'fd', 'root', 'cwd', 'exe', 'ns/pid']
    const script = `for name in ${names.join(' ')}; do ls -l /proc/1/$name/ >/dev/null 2>&1 && echo "$name listed"; cat /proc/1/$name >/dev/null 2>&1 && echo "$name read"; readlink /proc/1/$name; done; echo done`
    expect((await run(shell(script))).stdout).toBe('done\n')
    // The same on a process that is dumpable shows that the questions can be answered.
    const other = script.replaceAll('/proc/1/', '/proc/self/')
    expect((await run(shell(other))).stdout).toContain('environ read')
  })

  // Only root may look.
  it.runIf(isRoot)('keeps nothing of the variables and files that it handed on', async () => {
    const [variable, content] = ['canary-in-variable', 'canary-in-file'].map((it) => `${it}-${process.pid}`)
    const extra = [frame('f', 0o400, '/tmp/secret', Buffer.from(`${content}`))]
    const server = shell('read it < /tmp/secret; read end', { env: { SECRET: `${variable}` }, extra })
    await using sandbox = launch(server)
    await sandbox.report('S')
    const [pid = 0] = childrenOf(sandbox.child.pid ?? 0)
    const [child = 0] = childrenOf(pid)
    const held = (of: number): string[] =>
      [variable, content].filter((it) => it !== undefined && memoryOf(of).includes(it)) as string[]
    expect(held(pid)).toEqual([])
    await eventually(() => held(child).length === 2)
  })

  it('ignores every signal of the server', async () => {
    const script = 'for n in 1 2 3 6 9 11 13 15 17 18 19 20 31 34 64; do kill -$n 1; done; sleep 0.05; exit 5'
    expect((await run(shell(script))).code).toBe(5)
  })

  it('reaps ten thousand orphans, a thousand of them unreaped at once, while it serves', async () => {
    // A parent that waits for none of its children, ends, and leaves all of them to PID 1.
    const parent = buildProbe('orphans')
    const orphans = 'i=0; while [ $i -lt 10 ]; do /tmp/orphans || exit; i=$((i+1)); done'
    // Reaping follows the deaths by a moment, so the server looks until none is left, and is cut off if that never comes.
    const look = 'while grep -q "^State:.Z" /proc/[0-9]*/status 2>/dev/null; do :; done'
    const script = `${orphans}; echo $i; ${look}; echo none left`
    const { stdout } = await run(shell(script), { binds: { [parent]: '/tmp/orphans' } })
    expect(stdout).toBe('10\nnone left\n')
  })

  it('gives the exit code of the server for all 256', async () => {
    await inParallel([...Array(256).keys()], async (wanted) => {
      const { code, reports } = await run(shell(`exit ${wanted}`))
      expect(code).toBe(wanted)
      const exited = reports.at(-1)
      expect(exited?.type).toBe('E')
      expect([exited?.payload.readUInt32LE(0), exited?.payload.readUInt32LE(4)]).toEqual([wanted, 0])
    })
  })

  it('gives 128 and the number for a signal that ended the server', async () => {
    await inParallel([1, 2, 3, 6, 8, 9, 11, 13, 14, 15, 31, 34, 64], async (wanted) => {
      const { code, reports } = await run(
        shell(`kill -${wanted} $$; sleep 60`, { extra: [frame('l', 4, 0n, 0n)] }),
      )
      expect(code).toBe(128 + wanted)
      const exited = reports.at(-1)
      expect([exited?.payload.readUInt32LE(0), exited?.payload.readUInt32LE(4)]).toEqual([0, wanted])
    })
  })

  it('reports ready, started and exited, in this order, with the server’s use of the machine', async () => {
    const { reports } = await run(shell('i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'))
    expect(reports.map(({ type }) => type)).toEqual(['R', 'S', 'E'])
    expect(reports[1]?.payload.readUInt32LE(0)).toBe(2)
    const exited = reports[2]?.payload ?? Buffer.alloc(0)
    expect(exited.length).toBe(32)
    expect(exited.readBigUInt64LE(8) + exited.readBigUInt64LE(16)).toBeGreaterThan(1000n)
    expect(exited.readBigUInt64LE(24)).toBeGreaterThan(500_000n)
  })

  it.each([
    { program: '/nonexistent', code: 127, errno: 2 },
    { program: '/usr', code: 126, errno: 13 },
    { program: '/tmp/text', code: 126, errno: 8 },
    { program: '/tmp/script', code: 127, errno: 2 },
    { program: '/tmp/closed', code: 126, errno: 13 },
  ])(
    'ends with $code where the program is $program, and says errno $errno',
    async ({ program, code, errno }) => {
      const extra = [
        frame('f', 0o755, '/tmp/text', Buffer.from('neither ELF nor script\n')),
        frame('f', 0o755, '/tmp/script', Buffer.from('#!/nonexistent\n')),
        frame('f', 0o644, '/tmp/closed', Buffer.from('#!/usr/bin/sh\n')),
      ]
      const result = await run({ argv: [program], extra })
      expect(result.code).toBe(code)
      expect(result.reports.map(({ type }) => type)).toEqual(['R', 'X'])
      expect(result.reports[1]?.payload.readUInt32LE(0)).toBe(errno)
      expect(result.reports[1]?.payload.toString('utf8', 4)).toBe(`exec\0${program}\0`)
      expect(result.diagnostics).toContain(`sallyport-init: exec: ${program}: `)
    },
  )

  it('writes nothing to the server’s streams when it fails', async () => {
    const { stdout, stderr } = await run({ argv: ['/nonexistent'] })
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: '' })
  })
})
