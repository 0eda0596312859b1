// Servers on loopback that programs in a sandbox try to reach: HTTP, HTTPS with a certificate of the test's, git, an echo.
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { createServer as createTcp, type AddressInfo, type Server } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempDir } from './temp-dir.ts'

const tls = (file: string): string => fileURLToPath(new URL(`../fixtures/tls/${file}`, import.meta.url))

export interface TestServers extends AsyncDisposable {
  readonly http: number
  readonly https: number
  /** Says what it is told */
  readonly echo: number
  /** A folder that every user may read with ca.pem, which signed for api., git. and *.wild. of example.test */
  readonly trusted: string
}

/** Answers with the host that was asked for, and serves the repository `repo.git` with one commit. */
export const openTestServers = async (): Promise<TestServers> => {
  const folder = await tempDir()
  makeRepository(folder.path)
  const trusted = join(folder.path, 'trusted')
  mkdirSync(trusted)
  copyFileSync(tls('ca.pem'), join(trusted, 'ca.pem'))
  for (const path of [folder.path, trusted]) chmodSync(path, 0o755)
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.url?.startsWith('/repo.git/') === true) return serveGit(folder.path, request, response)
    response.end(`hello from ${request.headers.host ?? ''}\n`)
  }
  const options = { key: readFileSync(tls('server.key')), cert: readFileSync(tls('server.pem')) }
  const servers: Server[] = [
    createHttp(answer),
    createHttps(options, answer),
    createTcp({ allowHalfOpen: true }, (socket) => socket.on('error', () => socket.destroy()).pipe(socket)),
  ]
  const ports = await Promise.all(
    servers.map(async (server) => {
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      return (server.address() as AddressInfo).port
    }),
  )
  const [http = 0, https = 0, echo = 0] = ports
  return {
    http,
    https,
    echo,
    trusted,
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

const makeRepository = (folder: string): void => {
  const bare = join(folder, 'repo.git')
  const env = { PATH: process.env['PATH'], HOME: folder, GIT_CONFIG_NOSYSTEM: '1' }
  const git = (...args: string[]): void => void execFileSync('git', args, { env, stdio: 'ignore' })
  const work = join(folder, 'work')
  git('init', '-q', '-b', 'main', work)
  const as = ['-c', 'user.name=test', '-c', 'user.email=test@example.test']
  git('-C', work, ...as, 'commit', '-q', '--allow-empty', '-m', 'the commit that was cloned')
  git('clone', '-q', '--bare', work, bare)
}

/** The smart protocol, by git's own CGI program. */
const serveGit = (folder: string, request: IncomingMessage, response: ServerResponse): void => {
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'],
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  request.pipe(child.stdin)
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.once('close', () => {
    const whole = Buffer.concat(chunks)
    const end = whole.indexOf('\r\n\r\n')
    const type = /^content-type: (.*)$/im.exec(whole.toString('latin1', 0, end))?.[1]
    response.writeHead(200, { 'content-type': type?.trim() ?? 'text/plain' }).end(whole.subarray(end + 4))
  })
}
