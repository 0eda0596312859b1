// The stdio shim against a daemon of the test's own: bytes, ends, errors, signals, and who starts the daemon.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { catalogue } from '../../../src/errors.ts'
import { eventually } from '../../support/eventually.ts'
import { fullBacklog } from '../../support/full-backlog.ts'
import { buildInit, inParallel } from '../../support/init-sandbox.ts'
import { stateOf } from '../../support/processes.ts'
import { tempDir } from '../../support/temp-dir.ts'

const binary = buildInit()
const shimPath = join(dirname(binary), 'sallyport-stdio')

interface Behaviour {
  /** Answer to `session/attach`, with what follows on the wire */
  readonly attach?: string
  /** Answer to `session/result`; null closes without one */
  readonly result?: string | null
  /** What the session does with its bytes */
  readonly session?: (socket: Socket) => void
}

/** Just enough of a daemon: attach, a session, and its result. */
class Daemon implements AsyncDisposable {
  readonly requests: string[] = []
  readonly sockets = new Set<Socket>()
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(path: string, behaviour: Behaviour = {}): Promise<Daemon> {
    const server = createServer({ allowHalfOpen: true })
    const daemon = new Daemon(server)
    server.on('connection', (socket) => daemon.#serve(socket, behaviour))
    await new Promise<void>((resolve) => server.listen(path, resolve))
    return daemon
  }

  #serve(socket: Socket, { attach, result, session }: Behaviour): void {
    this.sockets.add(socket)
    socket.on('error', () => {})
    let held = Buffer.alloc(0)
    const onData = (chunk: Buffer): void => {
      held = Buffer.concat([held, chunk])
      const newline = held.indexOf(10)
      if (newline < 0) return
      const line = held.toString('utf8', 0, newline)
      this.requests.push(line)
      socket.off('data', onData)
      if (line.includes('session/result')) {
        if (result === null) socket.destroy()
        else
          socket.end(result ?? '{"jsonrpc":"2.0","id":1,"result":{"ended":true,"status":0,"reason":null}}\n')
        return
      }
      socket.pause()
      const rest = held.subarray(newline + 1)
      if (rest.length > 0) socket.unshift(rest)
      socket.write(attach ?? '{"jsonrpc":"2.0","id":1,"result":{"session":"s-1","server":"files"}}\n')
      ;(session ?? ((stream: Socket) => stream.pipe(stream)))(socket)
      socket.resume()
    }
    socket.on('data', onData)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

class Shim implements AsyncDisposable {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  readonly #chunks: Buffer[] = []
  stderr = ''

  constructor(args: readonly string[], env: Record<string, string> = {}, file = shimPath) {
    this.child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
    this.child.stdin?.on('error', () => {})
    this.child.stdout?.on('data', (chunk: Buffer) => this.#chunks.push(chunk)).on('error', () => {})
    this.child.stderr?.on('data', (text: Buffer) => (this.stderr += text.toString()))
    const { promise, resolve } = Promise.withResolvers<number | null>()
    this.ended = promise
    this.child.once('close', resolve)
  }

  get stdout(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  write(bytes: string | Uint8Array): this {
    this.child.stdin?.write(bytes)
    return this
  }

  end(): this {
    this.child.stdin?.end()
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL')
    await this.ended
  }
}

/** A shim on a daemon, both gone at the end. */
const attached = async (
  behaviour: Behaviour,
  use: (shim: Shim, daemon: Daemon) => Promise<void>,
): Promise<void> => {
  await using folder = await tempDir()
  await using daemon = await Daemon.listen(join(folder.path, 's'), behaviour)
  await using shim = new Shim(['files', '--socket', join(folder.path, 's')])
  await use(shim, daemon)
}

/** Below a folder, 4095 bytes of what is escaped. */
function longest(folder: string): string {
  let path = folder
  while (path.length < 4095) path += `/${'"'.repeat(Math.min(200, 4095 - path.length - 1))}`
  return path
}

/** What a daemon is told of the project that the shim was given. */
async function projectTold(folder: string, project: string): Promise<unknown> {
  const socket = join(folder, 's')
  await using daemon = await Daemon.listen(socket)
  await using shim = new Shim(['files', '--project', project, '--socket', socket])
  expect(await shim.end().ended).toBe(0)
  const { method, params } = JSON.parse(daemon.requests[0] ?? '') as { method: string; params: object }
  expect({ method, params }).toMatchObject({
    method: 'session/attach',
    params: { server: 'files', protocol: 'sallyport/1' },
  })
  return Reflect.get(params, 'project')
}

describe('the session', () => {
  it('asks for the server by name, then for its result, and gives that as its own status', async () => {
    const result = '{"jsonrpc":"2.0","id":1,"result":{"ended":true,"reason":"exited","status":77}}\n'
    await attached({ result }, async (shim, daemon) => {
      expect(await shim.end().ended).toBe(77)
      expect(daemon.requests).toEqual([
        '{"jsonrpc":"2.0","id":1,"method":"session/attach","params":{"server":"files","protocol":"sallyport/1"}}',
        '{"jsonrpc":"2.0","id":1,"method":"session/result","params":{"session":"s-1"}}',
      ])
      expect(shim.stderr).toBe('')
    })
  })

  it.each([
    ['its absolute path', (at: string) => at],
    ['letters that JSON escapes', (at: string) => join(at, 'a "quoted"\\folder\n\u00e9')],
    ['a path as long as any, of nothing else', longest],
  ])('names the project’s folder by %s', async (_what, folderIn) => {
    await using folder = await tempDir()
    const project = folderIn(folder.path)
    mkdirSync(project, { recursive: true })
    expect(await projectTold(folder.path, project)).toBe(project)
  })

  it.each([
    ['test', join(process.cwd(), 'test')],
    ['.', `${process.cwd()}/.`],
  ])('names the project’s folder %s from where the host started it', async (said, told) => {
    await using folder = await tempDir()
    expect(await projectTold(folder.path, said)).toBe(told)
  })

  it('begins with the byte after the answer’s line', async () => {
    const attach = '{"id":1,"result":{"server":"files","session":"s-1"}}\n{"first":1}\n\n half'
    await attached({ attach, session: (socket) => socket.end(' line') }, async (shim) => {
      expect(await shim.ended).toBe(0)
      expect(shim.stdout.toString()).toBe('{"first":1}\n\n half line')
    })
  })

  it('understands an answer that comes byte by byte', async () => {
    const whole = '{"jsonrpc":"2.0","result":{"session":"s-1"},"id":1}\nrest'
    await attached(
      {
        attach: '',
        session: (socket) => {
          for (const byte of whole) socket.write(byte)
          socket.end()
        },
      },
      async (shim) => {
        expect(await shim.ended).toBe(0)
        expect(shim.stdout.toString()).toBe('rest')
      },
    )
  })

  it('carries 8 MiB of random bytes there and back, whatever the chunks', async () => {
    const bytes = randomBytes(8 << 20)
    await attached({}, async (shim) => {
      for (let at = 0; at < bytes.length; at += 100_003) shim.write(bytes.subarray(at, at + 100_003))
      expect(await shim.end().ended).toBe(0)
      expect(shim.stdout.equals(bytes)).toBe(true)
    })
  })

  it('is full duplex: a host that writes and does not read gets its answers later', async () => {
    const down = randomBytes(2 << 20)
    const session = (socket: Socket): void => {
      let up = 0
      socket.write(down)
      socket.on('data', (chunk: Buffer) => (up += chunk.length))
      socket.on('end', () => socket.end(`${up}`))
    }
    await attached({ session }, async (shim) => {
      shim.child.stdout?.pause()
      const up = Buffer.alloc(4 << 20, 'x')
      await new Promise<void>((resolve) => shim.child.stdin?.end(up, () => resolve()))
      shim.child.stdout?.resume()
      expect(await shim.ended).toBe(0)
      expect(shim.stdout.equals(Buffer.concat([down, Buffer.from(`${up.length}`)]))).toBe(true)
    })
  })

  it('passes a half close on, and the answer that follows it', async () => {
    const session = (socket: Socket): void => {
      let text = ''
      socket
        .on('data', (chunk: Buffer) => (text += chunk.toString()))
        .on('end', () => socket.end(`got ${text}`))
    }
    await attached({ session }, async (shim) => {
      expect(await shim.write('question').end().ended).toBe(0)
      expect(shim.stdout.toString()).toBe('got question')
    })
  })

  it('ends when the daemon ends it although the host’s stdin is open', async () => {
    await attached({ session: (socket) => socket.end('bye') }, async (shim) => {
      expect(await shim.ended).toBe(0)
      expect(shim.stdout.toString()).toBe('bye')
    })
  })

  it('works where stdin and stdout are pipes, files or /dev/null', async () => {
    await using folder = await tempDir()
    await using daemon = await Daemon.listen(join(folder.path, 's'))
    const big = join(folder.path, 'big')
    writeFileSync(big, randomBytes(3 << 20))
    const script = `cat "$2" | "$0" files --socket "$1" | cmp - "$2" && "$0" files --socket "$1" < "$2" > "$2.out" && cmp "$2" "$2.out" && "$0" files --socket "$1" < /dev/null > /dev/null && "$0" files --socket "$1" <&- > /dev/null && echo same`
    const child = spawn('/usr/bin/sh', ['-c', script, shimPath, join(folder.path, 's'), big], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    child.stdout.on('data', (text: Buffer) => (said += text.toString()))
    await new Promise((resolve) => child.once('close', resolve))
    expect(said).toBe('same\n')
    expect(daemon.requests).toHaveLength(8)
  })
})

describe('the end', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'on %s is at once, and the daemon sees it',
    async (signal) => {
      let closed = false
      await attached(
        { session: (socket) => socket.on('close', () => (closed = true)).on('end', () => socket.destroy()) },
        async (shim, daemon) => {
          await eventually(() => daemon.requests.length === 1)
          await eventually(() => readFileSync(`/proc/${shim.child.pid}/wchan`, 'utf8').includes('poll'))
          shim.child.kill(signal)
          expect(await shim.ended).toBe({ SIGTERM: 143, SIGINT: 130, SIGHUP: 129 }[signal])
          await eventually(() => closed)
        },
      )
    },
  )

  it('comes when the host closes stdout, while idle and while writing', async () => {
    for (const busy of [false, true]) {
      const session = (socket: Socket): void => {
        if (busy) socket.write(Buffer.alloc(1 << 20))
        socket.on('end', () => socket.destroy())
      }
      await attached({ session }, async (shim, daemon) => {
        await eventually(() => daemon.requests.length === 1)
        shim.child.stdout?.destroy()
        expect(await shim.ended).toBe(141)
      })
    }
  })

  it('is 5 where the daemon dies with the session', async () => {
    await attached({ result: null, session: (socket) => void socket.destroy() }, async (shim) => {
      expect(await shim.ended).toBe(5)
      expect(shim.stderr).toBe('sallyport: the session ended, and no daemon says how its server did\n')
      expect(shim.stderr).toMatch(/^sallyport: [^\n]+\n$/)
    })
  })

  it('is 5 within 2 s where the daemon gives no result', async () => {
    await attached({ result: '', session: (socket) => void socket.end() }, async (shim) => {
      const before = performance.now()
      expect(await shim.ended).toBe(5)
      expect(performance.now() - before).toBeLessThan(2500)
    })
  })
})

describe('an error', () => {
  it('has the status that the catalogue gives its code', async () => {
    const source = readFileSync(new URL('../../../sandbox/init/statuses.gen.h', import.meta.url), 'utf8')
    const table = Object.fromEntries(
      [...source.matchAll(/\{"(ERR_\w+)", (\d+)\}/g)].map(([, code, status]) => [code, Number(status)]),
    )
    const expected = Object.fromEntries(
      Object.entries(catalogue)
        .filter(([, { exit }]) => exit !== 1)
        .map(([code, { exit }]) => [code, exit]),
    )
    expect(table, 'what sandbox/Makefile takes from src/errors.ts').toEqual(expected)
  })

  it('is one line on stderr, and its status is the shim’s', async () => {
    const cases = [
      ['ERR_POLICY_DENIED', 2],
      ['ERR_DAEMON_UNAVAILABLE', 5],
      ['ERR_NOT_AUTHORISED', 6],
      ['ERR_INVALID_PARAMS', 7],
      ['ERR_SERVER_NOT_FOUND', 8],
      ['ERR_SERVER_UNAVAILABLE', 1],
      ['ERR_OF_A_LATER_VERSION', 1],
    ] as const
    await inParallel(cases, async ([code, status]) => {
      const message = 'no "server" named files\nin \u001b[31mcolour\u0000 é'
      const error = { code: 1050, message, data: { code, failure: null } }
      await attached({ attach: `${JSON.stringify({ jsonrpc: '2.0', id: 1, error })}\n` }, async (shim) => {
        expect(await shim.ended).toBe(status)
        expect(shim.stderr).toBe(`sallyport: no "server" named files in  [31mcolour  é (${code})\n`)
        expect(shim.stdout.length).toBe(0)
      })
    })
  })

  it.each([
    'not json',
    '{}',
    '{"result":{}}',
    '{"result":{"session":""}}',
    '{"result":{"session":"a b"}}',
    '{"result":{"session":7}}',
    '{"result":{"session":"s"',
    '{"result":["session"]}',
    `{"result":${'['.repeat(200)}`,
    `{"x":"${'y'.repeat(70_000)}`,
  ])('is told of an answer that is none: %.40s', async (answer) => {
    await attached({ attach: `${answer}\n` }, async (shim) => {
      expect(await shim.ended).toBe(1)
      expect(shim.stderr).toMatch(/^sallyport: the daemon[^\n]+\n$/)
    })
  })

  it.each([
    [['']],
    [['a/b']],
    [['a b']],
    [['x'.repeat(129)]],
    [[]],
    [['a', 'b']],
    [['a', '--what']],
    [['a', '--socket']],
    [['a', '--project']],
  ])('of usage is 7: %j', async (args) => {
    await using shim = new Shim(args)
    expect(await shim.ended).toBe(7)
    expect(shim.stderr).toMatch(/^sallyport: [^\n]+\n$/)
  })

  it.each([
    ['', 'got nothing, expected a folder; name one, or leave --project out'],
    ['x'.repeat(4096), 'expected a path of at most 4095 bytes; name the folder by a shorter one, got: xxx'],
    ['/${workspaceFolder}', 'name one, or leave --project out, got: /${workspaceFolder}'],
    [
      process.execPath,
      `expected a folder that is there; name one, or leave --project out, got: ${process.execPath}`,
    ],
  ])('of a project that is none says what is expected, and what to do: %s', async (project, said) => {
    await using shim = new Shim(['a', '--project', project])
    expect(await shim.ended).toBe(7)
    expect(shim.stderr).toMatch(/^sallyport: --project: [^\n]+\n$/)
    expect(shim.stderr).toContain(said)
  })
})

/** A socket file whose listener was killed. */
const leaveStale = async (path: string): Promise<void> => {
  const program = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
  await once(spawn(process.execPath, ['-e', program], { stdio: 'ignore' }), 'exit')
}

describe('the socket', () => {
  it('is found by SALLYPORT_RUNTIME_DIR', async () => {
    await using folder = await tempDir()
    mkdirSync(join(folder.path, 'host'))
    await using daemon = await Daemon.listen(join(folder.path, 'host', 'host.sock'))
    await using shim = new Shim(['files'], { SALLYPORT_RUNTIME_DIR: folder.path })
    expect(await shim.end().ended).toBe(0)
    expect(daemon.requests).toHaveLength(2)
  })

  it.each(['run', './run', '/a/../b', '/..', '/a/..'])(
    'is looked for nowhere by a SALLYPORT_RUNTIME_DIR that leads to one place for each reader: %s',
    async (said) => {
      await using shim = new Shim(['files'], { SALLYPORT_RUNTIME_DIR: said })
      expect(await shim.ended).toBe(7)
      expect(shim.stderr).toBe(
        `sallyport: SALLYPORT_RUNTIME_DIR has to be an absolute path without .., mend it or leave it out: ${said}\n`,
      )
    },
  )

  it('that is not there, or nobody’s, is 5 with --no-autostart', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    for (const stale of [false, true]) {
      if (stale) await leaveStale(path)
      await using shim = new Shim(['files', '--no-autostart', '--socket', path])
      expect(await shim.ended).toBe(5)
      expect(shim.stderr).toBe(
        `sallyport: no daemon answers (${stale ? 'Connection refused' : 'No such file or directory'}); start one with \`sallyport serve\`: ${path}\n`,
      )
    }
  })

  it('that holds no more for now is waited for, also by a shim that is stopped meanwhile and goes on', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 'host.sock')
    await using daemon = await fullBacklog(path)
    await using shim = new Shim(['files', '--socket', path])
    const { pid = 0 } = shim.child
    await eventually(() => stateOf(pid) === 'S') // there is nothing else that it could wait for
    shim.child.kill('SIGSTOP')
    await eventually(() => stateOf(pid) === 'T')
    shim.child.kill('SIGCONT')
    daemon.goOn()
    expect([await shim.ended, shim.stderr]).toEqual([0, ''])
  })

  it('whose path has an escape sequence and a line break is told in one line that does nothing to a terminal', async () => {
    await using shim = new Shim([
      'files',
      '--no-autostart',
      '--socket',
      '/nonexistent/\u001b[31m\nsallyport: é',
    ])
    expect(await shim.ended).toBe(5)
    expect(shim.stderr).toMatch(/: \/nonexistent\/\?\[31m\?sallyport: é\n$/)
  })
})

describe('without a daemon', () => {
  /** A package whose `serve --background` is the test's. */
  const packaged = (folder: string, serve: string): string => {
    const libexec = join(folder, 'dist', 'libexec', process.arch)
    const node = join(folder, 'node_modules', 'node', 'bin', 'node')
    for (const path of [libexec, dirname(node), join(folder, 'host')]) mkdirSync(path, { recursive: true })
    copyFileSync(binary, join(libexec, 'sallyport-init'))
    linkSync(join(libexec, 'sallyport-init'), join(libexec, 'sallyport-stdio'))
    // Stands for Node: what the shim executes, with which arguments and environment, is what is tested.
    writeFileSync(node, `#!/bin/sh\n${serve}\n`)
    chmodSync(node, 0o755)
    return join(libexec, 'sallyport-stdio')
  }

  it('one is started with the listed environment, in a session of its own, and then attached to', async () => {
    await using folder = await tempDir()
    const seen = join(folder.path, 'seen')
    const file = packaged(
      folder.path,
      `{ echo "$@"; tr "\\0" "\\n" < /proc/$$/environ | sort; ls -l /proc/$$/fd | grep -c socket; cut -d" " -f6 /proc/$$/stat; echo $$; } > ${seen}.new; mv ${seen}.new ${seen}`,
    )
    const env = {
      PATH: '/usr/bin:/bin',
      HOME: folder.path,
      USER: 'u',
      LANG: 'C',
      SALLYPORT_RUNTIME_DIR: folder.path,
      SALLYPORT_CONFIG: '/c',
      LD_PRELOAD: '',
      AWS_SECRET: 'x',
      NODE_OPTIONS: '--x',
    }
    await using shim = new Shim(['files'], env, file)
    const text = await eventually(() => readFileSync(seen, 'utf8'))
    await using _ = await Daemon.listen(join(folder.path, 'host', 'host.sock'))
    expect(await shim.end().ended).toBe(0)
    const [args, ...rest] = text.trimEnd().split('\n')
    expect(args).toBe(`${folder.path}/dist/cli/main.js serve --background`)
    expect(rest.slice(0, -3)).toEqual([
      'HOME=' + folder.path,
      'LANG=C',
      'PATH=/usr/bin:/bin',
      'SALLYPORT_CONFIG=/c',
      `SALLYPORT_RUNTIME_DIR=${folder.path}`,
      'USER=u',
    ])
    // stderr alone is the host's (a socket here), stdin and stdout are not.
    expect(rest.at(-3)).toBe('1')
    expect(rest.at(-2)).toBe(rest.at(-1))
  })

  it('that could not be started is 5, and one line', async () => {
    await using folder = await tempDir()
    const file = packaged(folder.path, 'exit 7')
    await using shim = new Shim(['files'], { SALLYPORT_RUNTIME_DIR: folder.path }, file)
    const before = performance.now()
    expect(await shim.ended).toBe(5)
    expect(performance.now() - before).toBeLessThan(2000)
    expect(shim.stderr).toMatch(/^sallyport: no daemon answers, and [^\n]+\n$/)
  })

  /** Hosts of one daemon that is not there, and how often one was started for them. */
  const hostsOf = (folder: string) => {
    const marker = join(folder, 'started')
    const file = packaged(folder, `echo >> ${marker}; exec sleep 1`)
    const path = join(folder, 'host', 'host.sock')
    return {
      path,
      come: () => new Shim(['files'], { SALLYPORT_RUNTIME_DIR: folder, PATH: '/usr/bin:/bin' }, file),
      started: () => (existsSync(marker) ? readFileSync(marker, 'utf8').length : 0),
    }
  }

  it('one is started by one of those that come at once, and all are attached to it', async () => {
    await using folder = await tempDir()
    await using stack = new AsyncDisposableStack()
    const { path, come, started } = hostsOf(folder.path)
    const shims = Array.from({ length: 10 }, () => stack.use(come()))
    await eventually(() => started() > 0)
    await delay(500)
    await using _ = await Daemon.listen(path)
    expect(await Promise.all(shims.map((shim) => shim.end().ended))).toEqual(shims.map(() => 0))
    expect(started()).toBe(1)
  })

  it('one is started by the next where the one whose turn it was is gone', async () => {
    await using folder = await tempDir()
    const { path, come, started } = hostsOf(folder.path)
    await using first = come()
    await eventually(() => started() === 1)
    await using second = come()
    await delay(200)
    expect(started()).toBe(1)
    first.child.kill('SIGKILL')
    await eventually(() => started() === 2)
    await using _ = await Daemon.listen(path)
    expect(await second.end().ended).toBe(0)
  })

  it('one is started after ten seconds, whoever has the turn and starts none', async () => {
    await using folder = await tempDir()
    const { path, come, started } = hostsOf(folder.path)
    await using _turn = await Daemon.listen(`\0${path}`)
    const before = performance.now()
    await using shim = come()
    await eventually(() => started() === 1)
    expect(performance.now() - before).toBeGreaterThan(9900)
    await using _ = await Daemon.listen(path)
    expect(await shim.end().ended).toBe(0)
  })

  const ending: Behaviour = { attach: '', session: (socket) => socket.destroy() }

  it('that ended before it answered is followed by the next one', async () => {
    await using folder = await tempDir()
    const { path, come, started } = hostsOf(folder.path)
    const first = await Daemon.listen(path, ending)
    await using shim = come()
    await eventually(() => first.requests.length > 0)
    await first[Symbol.asyncDispose]()
    await eventually(() => started() === 1)
    await using next = await Daemon.listen(path)
    expect(await shim.write('a line\n').end().ended).toBe(0)
    expect(shim.stdout.toString()).toBe('a line\n')
    expect(next.requests.map((line) => (JSON.parse(line) as { method: string }).method)).toEqual([
      'session/attach',
      'session/result',
    ])
  })

  it('is 5, and one line, where each one ends before it answers, and it was asked nine times', async () => {
    await using folder = await tempDir()
    const { path, come, started } = hostsOf(folder.path)
    await using daemon = await Daemon.listen(path, ending)
    await using shim = come()
    expect(await shim.ended).toBe(5)
    expect(shim.stderr).toBe('sallyport: the daemon closed the connection without an answer\n')
    expect(daemon.requests.length).toBe(9)
    expect(started()).toBe(0)
  })

  it.each(['--no-autostart', '--socket'])(
    'is 5 at once with %s where it ends before it answers',
    async (option) => {
      await using folder = await tempDir()
      const { path } = hostsOf(folder.path)
      await using daemon = await Daemon.listen(path, ending)
      const args = ['files', ...(option === '--socket' ? [option, path] : [option])]
      await using shim = new Shim(args, { SALLYPORT_RUNTIME_DIR: folder.path })
      expect(await shim.ended).toBe(5)
      expect(daemon.requests.length).toBe(1)
    },
  )

  it('none is started for a socket that was named, or with --no-autostart', async () => {
    await using folder = await tempDir()
    const marker = join(folder.path, 'started')
    const file = packaged(folder.path, `touch ${marker}`)
    for (const args of [
      ['files', '--socket', join(folder.path, 's')],
      ['files', '--no-autostart'],
    ]) {
      await using shim = new Shim(args, { SALLYPORT_RUNTIME_DIR: folder.path }, file)
      expect(await shim.ended).toBe(5)
    }
    expect(() => readFileSync(marker)).toThrow()
  })
})

it('the shim costs less than 1 MiB of memory', async () => {
  await attached({}, async (shim) => {
    shim.write('x'.repeat(200_000))
    await eventually(() => shim.stdout.length === 200_000)
    const rollup = readFileSync(`/proc/${shim.child.pid}/smaps_rollup`, 'utf8')
    expect(Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1])).toBeLessThan(1024)
  })
})
