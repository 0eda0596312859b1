// An engine on another machine, reached as the docker CLI does: ssh runs `docker system dial-stdio` there.
import { spawn } from 'node:child_process'
import type { Agent } from 'node:http'
import { Duplex, type Readable, Writable } from 'node:stream'
import { http } from '../../lib/node-http.ts'

const connectSeconds = 10

/** What ssh itself needs of the daemon's environment; nothing else of it is given. */
const passed = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SSH_AUTH_SOCK', 'LANG'] as const

/**
 * An agent whose connections are ssh sessions, with the user's own ssh configuration, keys and known hosts; it asks
 * nothing, so an unknown host key fails. Each request is a session; destroying the agent ends those that run, and so does the end of
 * this process, be it killed (sandbox/init/kept.c).
 */
export const sshAgent = (
  { destination, port }: { readonly destination: string; readonly port: number | null },
  environment: Readonly<Record<string, string | undefined>>,
  initPath: string,
): Agent => {
  const options = ['-T', '-o', 'BatchMode=yes', '-o', `ConnectTimeout=${connectSeconds}`]
  const at = port === null ? [] : ['-p', String(port)]
  const env = Object.fromEntries(
    passed.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])),
  )
  const agent = new http.Agent()
  agent.createConnection = () => {
    const session = ['ssh', ...options, ...at, '--', destination, 'docker', 'system', 'dial-stdio']
    const child = spawn(initPath, ['kept', `${process.pid}`, ...session], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env,
    })
    // Without a descriptor to spare it has no streams, which no type tells; why is told as well, and nobody has to hear it twice.
    if ((child.stderr as Readable | undefined) === undefined) {
      child.once('error', () => {})
      throw Object.assign(new Error('there is no descriptor for ssh'), { code: 'EMFILE' })
    }
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said = `${said}${text}`.slice(-1000)))
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('close', (code) => resolve(code === 0 ? '' : `status ${code}: ${said.trim()}`))
    })
    const read = async function* (): AsyncGenerator<Buffer> {
      yield* child.stdout as AsyncIterable<Buffer>
      const problem = await ended
      if (problem !== '') throw new Error(`ssh ended with ${problem}`)
    }
    // A session that ended takes no more, and the read side says why.
    const input = child.stdin.on('error', () => {})
    const writable = new Writable({
      write: (chunk, _, done) => void input.write(chunk, () => done()),
      final: (done) => void input.end(() => done()),
    })
    const stream = Duplex.from({ readable: read(), writable })
    // Whoever sent the request hears of it; when there is none any more, nobody has to.
    stream.on('error', () => {}).once('close', () => child.kill())
    return stream
  }
  return agent
}
