// An engine on another machine, reached as the docker CLI does: ssh runs `docker system dial-stdio` there.
import { spawn } from 'node:child_process'
import { Agent } from 'node:http'
import { Duplex } from 'node:stream'

const connectSeconds = 10

/** What ssh itself needs of the daemon's environment; nothing else of it is given. */
const passed = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SSH_AUTH_SOCK', 'LANG'] as const

/**
 * An agent whose connections are ssh sessions, with the user's own ssh configuration, keys and known hosts; it asks
 * nothing, so an unknown host key fails. One connection lives on between requests; destroying the agent ends them.
 */
export const sshAgent = (
  { destination, port }: { readonly destination: string; readonly port: number | null },
  environment: Readonly<Record<string, string | undefined>>,
): Agent => {
  const options = ['-T', '-o', 'BatchMode=yes', '-o', `ConnectTimeout=${connectSeconds}`]
  const at = port === null ? [] : ['-p', String(port)]
  const env = Object.fromEntries(
    passed.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])),
  )
  const agent = new Agent({ keepAlive: true })
  agent.createConnection = () => {
    const child = spawn('ssh', [...options, ...at, '--', destination, 'docker', 'system', 'dial-stdio'], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env,
    })
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
    child.stdin.on('error', () => {
      // a session that ended: the read side says why
    })
    const stream = Duplex.from({ readable: read(), writable: child.stdin })
    stream.once('close', () => child.kill())
    return stream
  }
  return agent
}
