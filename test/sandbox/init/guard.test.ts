// The guard: one daemon for each runtime directory, and nothing of a killed one left a moment later.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { buildInit, isRoot } from '../../support/init-sandbox.ts'
import { policyOf } from '../../support/scheduling.ts'
import { tempDir } from '../../support/temp-dir.ts'

const binary = buildInit()

class Guard implements AsyncDisposable {
  readonly child: ChildProcess
  readonly exited: Promise<unknown>
  output = ''
  errors = ''

  constructor(folder: string, command: readonly string[] = [binary, 'guard', folder]) {
    const [file = '', ...args] = command
    this.child = spawn(file, args, { env: {}, stdio: ['pipe', 'pipe', 'pipe'] })
    this.exited = once(this.child, 'close')
    this.child.stdin?.on('error', () => {})
    this.child.stdout?.on('data', (text: Buffer) => (this.output += text.toString()))
    this.child.stderr?.on('data', (text: Buffer) => (this.errors += text.toString()))
  }

  static async held(folder: string): Promise<Guard> {
    const guard = new Guard(folder)
    await eventually(() => guard.output === 'held\n')
    return guard
  }

  say(...lines: readonly string[]): this {
    this.child.stdin?.write(lines.map((line) => `${line}\n`).join(''))
    return this
  }

  async end(): Promise<number | null> {
    this.child.stdin?.end()
    await this.exited
    return this.child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL')
    await this.exited
  }
}

describe('the lock', () => {
  it('is one daemon’s, and names it to the second', async () => {
    await using folder = await tempDir()
    await using first = await Guard.held(folder.path)
    await using second = new Guard(folder.path)
    await second.exited
    expect({ output: second.output, code: second.child.exitCode }).toEqual({
      output: `busy ${process.pid} ${folder.path}\n`,
      code: 1,
    })
    expect(statSync(join(folder.path, 'daemon.lock')).mode & 0o777).toBe(0o600)
    expect(first.child.exitCode).toBe(null)
  })

  it('is held without its file, too, which was removed meanwhile', async () => {
    await using folder = await tempDir()
    await using first = await Guard.held(folder.path)
    rmSync(join(folder.path, 'daemon.lock'))
    for (const _again of [1, 2]) {
      await using second = new Guard(folder.path)
      await second.exited
      expect({ output: second.output, code: second.child.exitCode }).toEqual({ output: 'busy \n', code: 1 })
    }
    first.say('done')
    expect(await first.end()).toBe(0)
    await using third = await Guard.held(folder.path)
    expect(third.output).toBe('held\n')
  })

  it('is free after done, and after the guard’s own end', async () => {
    await using folder = await tempDir()
    const first = await Guard.held(folder.path)
    first.say('done')
    expect(await first.end()).toBe(0)
    const second = await Guard.held(folder.path)
    second.child.kill('SIGKILL')
    await second.exited
    await using third = await Guard.held(folder.path)
    expect(third.output).toBe('held\n')
  })

  it('is free again soon after a daemon that is killed while its guard is stopped', async () => {
    await using folder = await tempDir()
    const asking = `const { pid } = require('node:child_process').spawn(${JSON.stringify(binary)}, ['guard', process.argv[1]],
      { env: {}, stdio: ['pipe', 'inherit', 'inherit'] }); console.log(pid); setInterval(() => {}, 1000)`
    const daemon = spawn(process.execPath, ['-e', asking, folder.path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    daemon.stdout.on('data', (text: Buffer) => (said += text.toString()))
    await eventually(() => said.includes('held\n') && /^\d+$/m.test(said))
    const pid = Number(/^\d+$/m.exec(said)?.[0])
    const state = (): string =>
      /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? ''
    process.kill(pid, 'SIGSTOP')
    await eventually(() => state() === 'T')
    daemon.kill('SIGKILL')
    const isGone = eventually(() => !existsSync(`/proc/${pid}`) || state() === 'Z')
    await isGone.catch((error: unknown) => {
      process.kill(pid, 'SIGKILL')
      throw error
    })
    await using next = await Guard.held(folder.path)
    expect(next.output).toBe('held\n')
  })

  it('is taken by one of many who come at once', async () => {
    await using folder = await tempDir()
    const guards = Array.from({ length: 12 }, () => new Guard(folder.path))
    await eventually(() => guards.every(({ output }) => output.endsWith('\n')))
    expect(guards.filter(({ output }) => output === 'held\n')).toHaveLength(1)
    for (const guard of guards) await guard[Symbol.asyncDispose]()
  })

  it('is refused by its errno where the lock file is a link, a folder or has no folder', async () => {
    await using folder = await tempDir()
    const target = join(folder.path, 'target')
    for (const [prepare, errno] of [
      ['link', constants.errno.ELOOP],
      ['folder', constants.errno.EISDIR],
      ['missing', constants.errno.ENOENT],
    ] as const) {
      const runtime = join(folder.path, prepare)
      if (prepare !== 'missing') mkdirSync(runtime)
      if (prepare === 'link') symlinkSync(target, join(runtime, 'daemon.lock'))
      if (prepare === 'folder') mkdirSync(join(runtime, 'daemon.lock'))
      await using guard = new Guard(runtime)
      await guard.exited
      const said = `failed ${errno}\n`
      expect({ code: guard.child.exitCode, output: guard.output }).toEqual({ code: 125, output: said })
      expect(guard.errors).toMatch(/^sallyport-init: guard: .*daemon\.lock: /)
    }
    expect(existsSync(target)).toBe(false)
  })

  it('outlives SIGTERM, SIGINT and SIGHUP', async () => {
    await using folder = await tempDir()
    await using guard = await Guard.held(folder.path)
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) guard.child.kill(signal)
    guard.say('nonsense')
    await eventually(() => guard.output.includes('refused'))
    const stat = readFileSync(`/proc/${guard.child.pid}/stat`, 'utf8').split(' ')
    expect(stat[5]).toBe(`${guard.child.pid}`) // a session of its own
  })
})

describe('a daemon that says that it ends', () => {
  // A daemon of its own for each, which lives on whatever it has said, beside a child that has nothing to do with it.
  const living = `const { spawn } = require('node:child_process')
    const guard = spawn(process.argv[1], ['guard', process.argv[2]], { env: {}, stdio: ['pipe', 'inherit', 'inherit'] })
    const beside = spawn('/usr/bin/sleep', ['987'], { stdio: 'ignore' })
    process.stdin.on('data', (text) => guard.stdin.write(String(text).replace('PID', process.pid).replace('OTHER', beside.pid)))
    console.log(JSON.stringify({ guard: guard.pid, beside: beside.pid }))`

  class Daemon implements AsyncDisposable {
    readonly process
    output = ''

    private constructor(folder: string) {
      this.process = spawn(process.execPath, ['-e', living, binary, folder], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      this.process.stdout.on('data', (text: Buffer) => (this.output += text.toString()))
    }

    static async held(folder: string): Promise<Daemon> {
      const daemon = new Daemon(folder)
      await eventually(() => daemon.output.includes('held\n') && daemon.output.includes('}\n'))
      return daemon
    }

    get pids(): { readonly guard: number; readonly beside: number } {
      return JSON.parse(/^\{.*\}$/m.exec(this.output)?.[0] ?? '')
    }

    get hasEnded(): boolean {
      return this.process.exitCode !== null || this.process.signalCode !== null
    }

    async [Symbol.asyncDispose](): Promise<void> {
      const { guard, beside } = this.pids
      for (const pid of [beside, guard]) if (isThere(pid)) process.kill(pid, 'SIGKILL')
      this.process.kill('SIGKILL')
      await eventually(() => this.hasEnded)
    }
  }

  const isThere = (pid: number): boolean =>
    existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))

  it('and does not is killed, after its locks were let go, and nothing beside it', async () => {
    await using folder = await tempDir()
    await using daemon = await Daemon.held(folder.path)
    const kept = join(folder.path, 'kept')
    writeFileSync(kept, '')
    daemon.process.stdin.write(`unlink ${kept}\nends PID\ndone\n`)
    await eventually(() => daemon.output.includes('free\n'))
    await using next = await Guard.held(folder.path)
    await eventually(() => daemon.hasEnded)
    expect(daemon.process.signalCode).toBe('SIGKILL')
    await eventually(() => !isThere(daemon.pids.guard))
    expect(isThere(daemon.pids.beside)).toBe(true)
    expect({ kept: existsSync(kept), next: next.child.exitCode }).toEqual({ kept: true, next: null })
  })

  it('and then says nothing is killed, and cleaned up after', async () => {
    await using folder = await tempDir()
    await using daemon = await Daemon.held(folder.path)
    const made = join(folder.path, 'made')
    writeFileSync(made, '')
    daemon.process.stdin.write(`unlink ${made}\nends PID\n`)
    await eventually(() => daemon.hasEnded)
    expect(daemon.process.signalCode).toBe('SIGKILL')
    await eventually(() => !isThere(daemon.pids.guard))
    expect({ made: existsSync(made), beside: isThere(daemon.pids.beside) }).toEqual({
      made: false,
      beside: true,
    })
  })

  it.each(['OTHER', '1', '0', '-1', 'PID1', 'PID x', ''])('can’t have %j ended in its place', async (pid) => {
    await using folder = await tempDir()
    await using daemon = await Daemon.held(folder.path)
    daemon.process.stdin.write(`ends ${pid}\ndone\n`)
    await eventually(() => daemon.output.includes('refused not the pid of the guard'))
    await eventually(() => !isThere(daemon.pids.guard))
    expect(daemon.output).not.toContain('free')
    expect({ daemon: daemon.hasEnded, beside: isThere(daemon.pids.beside) }).toEqual({
      daemon: false,
      beside: true,
    })
  })
})

describe('what it is told', () => {
  it.each([
    ['nonsense', 'not one of'],
    ['unlink relative', 'absolute'],
    ['unlink /', 'absolute'],
    ['rmdir /a/../b', '..'],
    ['cgroup /a/..', '..'],
    [`unlink /${'x'.repeat(4095)}`, 'longer'],
    [`unlink /${'x'.repeat(10_000)}`, 'too long'],
    ['unlink /a\0b', 'NUL'],
  ])('%s is refused with the reason, and changes nothing', async (line, reason) => {
    await using folder = await tempDir()
    await using guard = await Guard.held(folder.path)
    guard.say(line)
    await eventually(() => guard.output.includes('\n', 5))
    expect(guard.output).toMatch(/^held\nrefused .*\n$/)
    expect(guard.output).toContain(reason)
  })

  it('fits 256 entries, each once, and the next is refused', async () => {
    await using folder = await tempDir()
    await using guard = await Guard.held(folder.path)
    const lines = Array.from({ length: 256 }, (_, index) => `unlink ${folder.path}/none-${index}`)
    guard.say(...lines, ...lines, 'unlink /one/more')
    await eventually(() => guard.output.includes('refused'))
    expect(guard.output).toBe('held\nrefused the table of 256 entries is full\n')
    guard.say('done')
    expect(await guard.end()).toBe(0)
  })
})

describe('clean-up', () => {
  it('is left to the daemon that says done', async () => {
    await using folder = await tempDir()
    const file = join(folder.path, 'kept')
    writeFileSync(file, '')
    const guard = await Guard.held(folder.path)
    expect(await guard.say(`unlink ${file}`, 'done').end()).toBe(0)
    expect(existsSync(file)).toBe(true)
  })

  it('removes files and empty folders of a daemon that was killed, and follows no link', async () => {
    await using folder = await tempDir()
    const at = (name: string): string => join(folder.path, name)
    for (const name of ['empty', 'full', 'target', 'doors', 'doors/i-1', 'doors/i-2', 'ways', 'ways/i-3'])
      mkdirSync(at(name))
    for (const name of [
      'socket',
      'full/file',
      'target/file',
      'empty/file',
      'doors/i-1/door',
      'ways/i-3/kept',
    ])
      writeFileSync(at(name), '')
    symlinkSync(at('target'), at('link'))
    symlinkSync(at('target'), at('doors/i-2/door'))
    symlinkSync(at('target'), at('ways/i-4'))
    writeFileSync(at('target/door'), '')
    // The daemon is a shell that holds the guard's stdin and is killed: nothing but its end tells the guard.
    const script = 'mkfifo "$1/in"; "$0" guard "$1" < "$1/in" & exec 9> "$1/in"; printf "$2" >&9; sleep 60'
    const orders = [
      `rmdir ${at('empty')}`,
      `unlink ${at('empty/file')}`,
      `unlink ${at('socket')}`,
      `rmdir ${at('full')}`,
      `unlink ${at('link')}`,
      `doors ${at('doors')}`,
      `doors ${at('ways')}`,
    ]
    const daemon = spawn('/usr/bin/sh', ['-c', script, binary, folder.path, `${orders.join('\\n')}\\n`], {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    let said = ''
    daemon.stdout.on('data', (text: Buffer) => (said += text.toString()))
    await eventually(() => said.includes('held\n'))
    expect(existsSync(at('socket'))).toBe(true)
    process.kill(-(daemon.pid ?? 0), 'SIGKILL')
    await eventually(() => !existsSync(at('empty')))
    expect(readdirSync(folder.path).toSorted()).toEqual(['daemon.lock', 'full', 'in', 'target', 'ways'])
    expect(readdirSync(at('target')).toSorted()).toEqual(['door', 'file'])
    expect(readdirSync(at('ways')).toSorted()).toEqual(['i-3', 'i-4'])
    // Only now is the runtime directory anybody else's.
    await using next = await Guard.held(folder.path)
    expect(next.output).toBe('held\n')
  })
})

describe.runIf(isRoot)('cgroups', () => {
  const roots = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup/memory', '/sys/fs/cgroup'].filter((path) =>
    existsSync(join(path, 'cgroup.procs')),
  )

  const cgroup = (name: string): AsyncDisposable & { readonly path: string } => {
    const path = join(roots[0] ?? '/sys/fs/cgroup', `sp-guard-${process.pid}-${name}`)
    mkdirSync(path)
    return {
      path,
      async [Symbol.asyncDispose]() {
        if (existsSync(path))
          execFileSync('find', [path, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';'])
      },
    }
  }

  const member = (folder: string): ChildProcess => {
    const child = spawn('/usr/bin/sh', [
      '-c',
      'trap "" TERM; echo $$ > "$0/cgroup.procs"; sleep 60 & wait',
      folder,
    ])
    child.on('error', () => {})
    return child
  }

  it('of a killed daemon are emptied and removed, within their own second to end', async () => {
    await using folder = await tempDir()
    await using parent = cgroup('killed')
    const instances = ['one', 'two'].map((name) => join(parent.path, name))
    for (const path of instances) mkdirSync(path)
    mkdirSync(join(parent.path, 'empty'))
    const children = instances.map(member)
    for (const path of instances)
      await eventually(() => readFileSync(join(path, 'cgroup.procs'), 'utf8').split('\n').length > 2)
    const bystander = spawn('/usr/bin/sleep', ['60'])
    const guard = await Guard.held(folder.path)
    const before = performance.now()
    expect(await guard.say(`cgroup ${parent.path}`).end()).toBe(0)
    expect(performance.now() - before).toBeGreaterThan(990)
    expect(performance.now() - before).toBeLessThan(2000)
    expect(existsSync(parent.path)).toBe(false)
    for (const child of children) await eventually(() => child.signalCode === 'SIGKILL')
    expect(bystander.exitCode ?? bystander.signalCode).toBe(null)
    bystander.kill('SIGKILL')
  })

  it('that empty themselves are not waited for', async () => {
    await using folder = await tempDir()
    await using parent = cgroup('empty')
    mkdirSync(join(parent.path, 'one'))
    const guard = await Guard.held(folder.path)
    const before = performance.now()
    await guard.say(`cgroup ${parent.path}`).end()
    expect(performance.now() - before).toBeLessThan(500)
    expect(existsSync(parent.path)).toBe(false)
  })

  it('keep the processes that are in the named folder itself: those are not instances', async () => {
    await using folder = await tempDir()
    await using parent = cgroup('own')
    mkdirSync(join(parent.path, 'one'))
    const daemon = member(parent.path)
    await eventually(() => readFileSync(join(parent.path, 'cgroup.procs'), 'utf8').split('\n').length > 2)
    const guard = await Guard.held(folder.path)
    await guard.say(`cgroup ${parent.path}`).end()
    expect(daemon.exitCode ?? daemon.signalCode).toBe(null)
    expect(existsSync(join(parent.path, 'one'))).toBe(false)
    for (const pid of readFileSync(join(parent.path, 'cgroup.procs'), 'utf8').trim().split('\n'))
      process.kill(Number(pid), 'SIGKILL')
    await eventually(() => readFileSync(join(parent.path, 'cgroup.procs'), 'utf8') === '')
  })
})

describe('the daemon', () => {
  const startsGuard = 'exec 3<&0; "$0" guard "$1" <&3 3<&- & exec 3<&- </dev/null; wait'
  /** A shell that starts a guard of its own, under a policy of `chrt`. */
  const under = (policy: string, folder: string): Guard =>
    new Guard(folder, ['chrt', policy, '0', 'sh', '-c', startsGuard, binary, folder])

  it.each([
    ['--other', 'batch'],
    ['--idle', 'idle'],
  ])('under %s is scheduled as %s once its guard holds', async (policy, then) => {
    await using folder = await tempDir()
    await using guard = under(policy, folder.path)
    await eventually(() => guard.output === 'held\n')
    expect(policyOf(guard.child.pid ?? 0)).toBe(then)
    expect(await guard.say('done').end()).toBe(0)
  })

  it('leaves no file of its memory where it crashes, whatever it may by its caller', async () => {
    await using folder = await tempDir()
    const asMuch = `ulimit -S -c "$(ulimit -H -c)"; ${startsGuard}`
    await using guard = new Guard(folder.path, ['sh', '-c', asMuch, binary, folder.path])
    await eventually(() => guard.output === 'held\n')
    const limits = readFileSync(`/proc/${guard.child.pid}/limits`, 'utf8')
    expect(limits).toMatch(/^Max core file size +0 +0 /m)
    expect(await guard.say('done').end()).toBe(0)
  })
})
