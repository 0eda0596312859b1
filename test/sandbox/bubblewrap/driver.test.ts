// The bubblewrap driver against the real launcher, bubblewrap, init and kernel.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  openSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import type { SallyportError } from '../../../src/errors.ts'
import { confine } from '../../../src/sandbox/bubblewrap/driver.ts'
import { credentialFolder } from '../../../src/sandbox/spec.ts'
import { inputOf } from '../../../src/supervisor/dispatch.ts'
import { isNoTry } from '../../../src/supervisor/instance/life.ts'
import { eventually } from '../../support/eventually.ts'
import { inGoodTime } from '../../support/pace.ts'
import { mountOf, ownUid, planOf, run, start, textOf } from '../../support/plan.ts'
import { childrenOf, processesOf, processesWith } from '../../support/processes.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { collect } from '../../support/collect.ts'

const isRoot = process.getuid?.() === 0
const signal = AbortSignal.timeout(600_000)
const sh = (script: string, ...words: string[]): string[] => ['/bin/sh', '-c', script, ...words]
/** Stays, and shows the script's own word in its argv */
const stay = 'sh -c "while :; do sleep 600; done" "$0"'
const word = (): string => `word-${Math.random().toString(36).slice(2)}`

const monitors = () => processesWith('/sallyport/init').filter(({ argv }) => argv[0] === 'bwrap')
const before = new Set(monitors().map(({ pid }) => pid))
afterEach(async () => {
  // Other workers have sandboxes of their own; what this file leaves would never go.
  await eventually(() => monitors().every(({ pid }) => before.has(pid) || !isOurs(pid)))
})
const isOurs = (pid: number): boolean => {
  try {
    return childrenOf(process.pid).includes(pid)
  } catch {
    return false
  }
}

describe('a confined server', () => {
  test('gets exactly the bytes that are written to it, and what it writes arrives whole', async () => {
    await using server = await start(await planOf(['/bin/cat']))
    const sent = Buffer.alloc(300_000, 'sallyport\n\0\xff', 'latin1')
    inputOf(server).end(sent)
    const chunks: Buffer[] = []
    for await (const chunk of server.stdout) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).equals(sent)).toBe(true)
    expect(await server.ended).toEqual({ code: 0, signal: null, reason: 'exited' })
  })

  test('holds nothing of its launch that only its sandbox had to read', async () => {
    const launched = async () => {
      const plan = await planOf(['/bin/cat'])
      return { server: await start(plan), read: new WeakRef(plan.arguments) }
    }
    const { server, read } = await launched()
    await using _ = server
    await eventually(() => {
      collect()
      return read.deref() === undefined
    })
  })

  test('that writes and exits at once loses nothing, even to a reader who comes late', async () => {
    const server = await start(await planOf(sh('head -c 60000 /dev/zero; echo err >&2; exit 3')))
    expect(await server.ended).toEqual({ code: 3, signal: null, reason: 'exited' })
    expect((await textOf(server.stdout)).length).toBe(60_000)
    expect(await textOf(server.stderr)).toBe('err\n')
  })

  test('gets the secrets of its call in variables and files of its own, and in no argument', async () => {
    const secret = `s3cret-${Math.random()}`
    const script =
      'stat -c "%a %u %n" "$KEY_FILE"; cat "$KEY_FILE"; echo; echo "$KEY"; cat /proc/[0-9]*/cmdline'
    const plan = await planOf(sh(script), {
      spec: { hasCredentialFiles: true },
      secrets: () => ({
        environment: { KEY: `${secret}-env`, KEY_FILE: `${credentialFolder}/key` },
        files: [{ name: 'key', content: Buffer.from(`${secret}-file`) }],
      }),
    })
    await using server = await start(plan)
    const [stats, file, variable, commands] = (await textOf(server.stdout)).split('\n')
    expect([stats, file, variable]).toEqual([
      `400 1000 ${credentialFolder}/key`,
      `${secret}-file`,
      `${secret}-env`,
    ])
    expect(commands).not.toContain(secret)
    expect(JSON.stringify([plan.spec.environment, plan.arguments, server.spec.environment])).not.toContain(
      secret,
    )
  })

  test('that a signal ends is reported with the signal', async () => {
    const { exit } = await run(await planOf(sh('kill -SEGV $$')))
    expect(exit).toEqual({ code: null, signal: 11, reason: 'exited' })
  })

  test('hears SIGTERM itself and may end in its own way', async () => {
    await using server = await start(
      await planOf(sh('trap "exit 7" TERM; echo up; while :; do sleep 0.05; done')),
    )
    await server.stdout[Symbol.asyncIterator]().next()
    server.terminate()
    expect(await server.ended).toEqual({ code: 7, signal: null, reason: 'exited' })
  })

  test('is killed with all that it started: daemons, sessions, ignored signals, stopped processes', async () => {
    const marker = word()
    const server = await start(
      await planOf(
        sh(
          'trap "" TERM HUP INT; (setsid ' +
            stay +
            ' >/dev/null 2>&1 &) ;' +
            'sleep 600 & kill -STOP $!; echo up; exec sleep 600',
          marker,
        ),
      ),
    )
    await server.stdout[Symbol.asyncIterator]().next()
    await eventually(() => processesWith(marker).length > 0)
    const startedAt = performance.now()
    server.kill()
    expect(await server.ended).toEqual({ code: null, signal: null, reason: 'killed' })
    expect(performance.now() - startedAt).toBeLessThan(1_000)
    expect(processesWith(marker)).toEqual([])
    if (isRoot) expect(processesOf(server.spec.hostUid)).toEqual([])
  })

  test('takes what it left behind along when it exits', async () => {
    const marker = word()
    const { exit } = await run(await planOf(sh(`setsid ${stay} >/dev/null 2>&1 </dev/null & exit 0`, marker)))
    expect(exit.reason).toBe('exited')
    expect(processesWith(marker)).toEqual([])
  })

  test('that closes or breaks its streams does not hurt the daemon', async () => {
    await using server = await start(await planOf(sh('exec 0<&- 1>&- 2>&-; sleep 0.2; exit 5')))
    inputOf(server).write('x'.repeat(100_000))
    expect(await server.ended).toMatchObject({ code: 5 })
  })
})

describe('what goes along into the sandbox', () => {
  test('a descriptor that leaked into the daemon stays outside, though a bare child would get it', async () => {
    const script = fileURLToPath(new URL('../../support/list-descriptors.ts', import.meta.url))
    // Beyond the 16 or so that Node marks close-on-exec when it starts.
    const leak = openSync('/etc/hostname', 'r')
    const stdio: ('ignore' | 'pipe' | 'inherit' | number)[] = ['ignore', 'pipe', 'inherit']
    while (stdio.length < 77) stdio.push('ignore')
    const shown = execFileSync(process.execPath, [script], { encoding: 'utf8', stdio: [...stdio, leak] })
    closeSync(leak)
    const { bare, confined } = JSON.parse(shown) as Record<'bare' | 'confined', string[]>
    expect(bare).toContain('77')
    expect(confined.filter((fd) => Number(fd) > 3)).toEqual([]) // 3 is the folder that ls itself has open
  })

  test('nothing of the daemon’s environment reaches launcher, bubblewrap or init', async () => {
    process.env['SALLYPORT_CANARY'] = 'canary-value'
    await using server = await start(
      await planOf(sh('env; cat /proc/1/environ 2>/dev/null; echo end; read x')),
    )
    const reader = server.stdout[Symbol.asyncIterator]()
    let text = ''
    while (!text.includes('end')) text += String((await reader.next()).value)
    expect(text).not.toContain('canary')
    const monitor = Number(
      /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${server.initPid}/status`, 'utf8'))?.[1],
    )
    const { environ, cmdline } = {
      environ: readFileSync(`/proc/${monitor}/environ`, 'utf8'),
      cmdline: readFileSync(`/proc/${monitor}/cmdline`, 'utf8'),
    }
    expect(environ).not.toContain('canary')
    expect(cmdline).toMatch(/^bwrap\0--args\0\d+\0--\0\/sallyport\/init\0init\0$/)
    delete process.env['SALLYPORT_CANARY']
  })
})

test('a daemon under tighter limits than the profile gives passes them on, and its servers start', () => {
  const script = fileURLToPath(new URL('../../support/list-limits.ts', import.meta.url))
  const limited = execFileSync('prlimit', ['--nofile=300:300', process.execPath, script], {
    encoding: 'utf8',
  })
  expect(limited).toBe('300\n')
})

describe('the gate', () => {
  const withMarker = async (): Promise<{
    folder: string
    marker: string
    dispose: () => PromiseLike<void>
  }> => {
    const dir = await tempDir()
    chmodSync(dir.path, 0o777)
    return { folder: dir.path, marker: join(dir.path, 'ran'), dispose: () => dir[Symbol.asyncDispose]() }
  }
  const plan = async (folder: string) =>
    planOf(sh('echo ran > /workspace/ran'), {
      spec: { mounts: [mountOf(folder, '/workspace', { access: 'write' })] },
    })

  test('holds: nothing of the server runs before go, everything after it', async () => {
    const { folder, marker, dispose } = await withMarker()
    {
      await using gate = await confine(await plan(folder), { signal })
      expect(gate).toBeDefined()
    }
    expect(existsSync(marker)).toBe(false)
    const gate = await confine(await plan(folder), { signal })
    await using server = await gate.open({ signal })
    expect((await server.ended).code).toBe(0)
    expect(existsSync(marker)).toBe(true)
    await dispose()
  })

  test('one whose PID 1 was killed is lost in the turn in which that is to be seen, whatever was heard of it', async () => {
    const { folder, dispose } = await withMarker()
    await using gate = await confine(await plan(folder), { signal })
    expect(gate.isLost()).toBe(false)
    process.kill(gate.initPid, 'SIGKILL')
    for (const end = performance.now() + 5000; !gate.isLost() && performance.now() < end;);
    expect(gate.isLost()).toBe(true)
    await dispose()
  })

  test('stays shut when a source was replaced between plan and mount', async () => {
    const { folder, dispose } = await withMarker()
    const source = join(folder, 'granted')
    mkdirSync(source, { mode: 0o777 })
    const judged = await planOf(sh('true'), { spec: { mounts: [mountOf(source, '/project')] } })
    renameSync(source, `${source}.old`)
    mkdirSync(source)
    writeFileSync(join(source, 'secret'), 'secret')
    await expect(confine(judged, { signal })).rejects.toMatchObject({
      code: 'ERR_SANDBOX_SETUP',
      details: { step: 'gate', target: '/project', source },
    })
    await dispose()
  })

  test('an abort while waiting throws its reason and leaves nothing', async () => {
    const controller = new AbortController()
    const uid = ownUid()
    const waiting = confine(
      await planOf(sh('true'), { spec: { hostUid: uid, hostGid: isRoot ? uid : (process.getgid?.() ?? 0) } }),
      {
        signal: controller.signal,
      },
    )
    controller.abort(new Error('changed my mind'))
    await expect(waiting).rejects.toThrow('changed my mind')
    // PID 1 lets go of its channel a moment before it is a zombie, and who was to cover /proc hears of the end by a signal
    if (isRoot) await inGoodTime(() => processesOf(uid).length === 0, 2_000)
  })
})

describe('a launch that cannot be made', () => {
  test.each([
    ['uid 0', { spec: { hostUid: 0, hostGid: 0 } }, /identity/],
    ['a missing tool', { tool: '/nonexistent/bwrap' }, /\/nonexistent\/bwrap/],
    ['a tool that refuses its arguments', { arguments: ['--no-such-option'] }, /no-such-option/],
    ['a tool that is not one', { tool: '/bin/false' }, /status 1/],
    ['a missing launcher', { launcher: '/nonexistent/init' }, /ENOENT/],
  ])('for %s names the step and what the launcher said', async (_, change, message) => {
    const failing = confine(await planOf(sh('true'), change), { signal })
    await expect(failing).rejects.toMatchObject({
      code: 'ERR_SANDBOX_SETUP',
      message: expect.stringMatching(message) as unknown,
      details: { server: 'probe' },
    })
  })

  test.each([
    ['a missing program', ['/usr/bin/absent'], {}, /absent: no such file/],
    ['a program that is a folder', ['/usr'], {}, /permission denied/],
    ['a missing working directory', sh('true'), { cwd: '/absent' }, /cwd: \/absent/],
  ])('for %s is told from a broken sandbox', async (_, argv, spec, message) => {
    await expect(start(await planOf(argv, { spec }))).rejects.toMatchObject({
      code: 'ERR_SANDBOX_EXEC',
      message: expect.stringMatching(message) as unknown,
    })
  })

  test('a launcher that hangs is given up and killed', async () => {
    const script = fileURLToPath(new URL('../../fixtures/hang.sh', import.meta.url))
    const hanging = confine(await planOf(sh('true'), { launcher: script }), {
      signal: AbortSignal.timeout(300),
    })
    await expect(hanging).rejects.toMatchObject({ name: 'TimeoutError' })
  })
})

describe('when something else kills a part', () => {
  const monitorOf = (initPid: number): number =>
    Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${initPid}/status`, 'utf8'))?.[1])

  test.each([
    ['the monitor', (initPid: number) => monitorOf(initPid), { reason: 'sandbox-lost' }],
    ['PID 1', (initPid: number) => initPid, { reason: 'sandbox-lost' }],
    ['the server', (initPid: number) => childrenOf(initPid)[0] ?? 0, { reason: 'exited', signal: 9 }],
  ])('%s, everything else ends with it, and one exit is told', async (_, victim, exit) => {
    const marker = word()
    await using server = await start(await planOf(sh(`setsid ${stay} & echo up; sleep 600`, marker)))
    await server.stdout[Symbol.asyncIterator]().next()
    process.kill(victim(server.initPid), 'SIGKILL')
    expect(await server.ended).toMatchObject(exit)
    expect(processesWith(marker)).toEqual([])
  })

  test('the daemon, all is gone within a second, whatever the server ignores and its stop allows', async () => {
    const holder = fileURLToPath(new URL('../../support/hold-sandbox.ts', import.meta.url))
    const marker = word()
    const script = `trap "" TERM HUP INT; setsid ${stay} & echo up; while :; do sleep 600; done`
    const daemon = spawn(process.execPath, [holder, ...sh(script, marker)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(daemon.stdout, 'data')
    expect(processesWith(marker).length).toBeGreaterThanOrEqual(2)
    daemon.kill('SIGKILL')
    await once(daemon, 'exit')
    await inGoodTime(() => processesWith(marker).length === 0, 1_000)
  })
})

/** A launch below a limit that whoever started the daemon, or its machine, has set for its processes. */
const launchBelow = async (limit: string): Promise<unknown> => {
  await using folder = await tempDir()
  chmodSync(folder.path, 0o755)
  const plan = await planOf(['/bin/true'])
  const launcher = join(folder.path, 'launcher')
  writeFileSync(launcher, `#!/bin/sh\nexec prlimit ${limit} '${plan.launcher}' "$@"\n`, { mode: 0o755 })
  return await confine({ ...plan, launcher }, { signal }).then(String, (error: unknown) => error)
}

test('a launch that finds no room below the limit on a file’s size is none of its server’s attempts', async () => {
  const failed = await launchBelow('--fsize=512:512')
  expect(failed).toMatchObject({ code: 'ERR_SHORTAGE', details: { status: 'it ended by SIGXFSZ' } })
  expect(isNoTry(failed as SallyportError)).toBe(true)
})

test.each([
  [
    'process for the launcher',
    '--nproc=1:1',
    'sallyport-init: covers: fork: Resource temporarily unavailable',
  ],
  ['descriptor for the launcher', '--nofile=9:9', 'sallyport-init: tool: memfd_create: Too many open files'],
  ['descriptor for the sandbox tool', '--nofile=12:12', 'ns failed: Too many open files'],
])(
  'a launch that finds no %s fails as a shortage, and is none of its server’s attempts',
  async (_, limit, said) => {
    const failed = await launchBelow(limit)
    expect(failed).toMatchObject({
      code: 'ERR_SHORTAGE',
      message: expect.stringMatching(`${said}; stop what uses up`) as unknown,
    })
    expect(isNoTry(failed as SallyportError)).toBe(true)
  },
)

test('so does one that finds no process for its server', async () => {
  const plan = await planOf(['/bin/true'])
  const gate = await confine(plan, { signal })
  const { hostUid, hostGid } = plan.spec
  const own = isRoot ? ['setpriv', `--reuid=${hostUid}`, `--regid=${hostGid}`, '--clear-groups'] : ['env']
  const [program, ...args] = [...own, 'prlimit', `--pid=${gate.initPid}`, '--nproc=1:1']
  execFileSync(program, args)
  const failed = await gate.open({ signal }).then(String, (error: unknown) => error)
  expect(failed).toMatchObject({ code: 'ERR_SHORTAGE', details: { errno: constants.errno.EAGAIN } })
  expect(isNoTry(failed as SallyportError)).toBe(true)
})
