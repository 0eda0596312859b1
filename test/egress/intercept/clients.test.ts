// Programs as they are, with nothing but the variables that name the bundle: the secret is used, and never theirs.
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { spawn } from 'node:child_process'
import { expect, test } from 'vitest'
import { intercepted, token } from '../../support/intercepted.ts'
import { patienceMs } from '../../support/patience.ts'

const run = promisify(execFile)

type Way = Awaited<ReturnType<typeof intercepted>>
/** What a sandbox's environment holds of all this. */
const environment = (at: Way): Readonly<Record<string, string>> => ({
  API_TOKEN: at.placeholder,
  API: at.url,
  PATH: process.env['PATH'] ?? '/usr/bin:/bin',
  HOME: at.dir.path,
  ...Object.fromEntries(
    ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO'].map((name) => [
      name,
      at.bundle,
    ]),
  ),
})

const node = (code: string): readonly string[] => [process.execPath, '--input-type=module', '-e', code]

/** Each asks twice, so that a connection that is kept is used again. */
const clients: Readonly<Record<string, readonly string[]>> = {
  'Node’s fetch': node(`
    for (const path of ['/a', '/b']) {
      const response = await fetch(process.env.API + path, { headers: { authorization: 'Bearer ' + process.env.API_TOKEN } })
      console.log(response.status, await response.text())
    }`),
  'Node’s https': node(`
    import { get } from 'node:https'
    for (const path of ['/a', '/b']) await new Promise((resolve) => get(process.env.API + path,
      { headers: { Authorization: 'Bearer ' + process.env.API_TOKEN } }, (response) => {
        process.stdout.write(response.statusCode + ' ')
        response.pipe(process.stdout, { end: false })
        response.on('end', () => { console.log(); resolve() })
      }))`),
  curl: [
    'sh',
    '-c',
    'curl -sS --fail --compressed -w " %{http_code}\\n" -H "Authorization: Bearer $API_TOKEN" "$API/a" "$API/b"',
  ],
  'curl, asking for HTTP/2': [
    'sh',
    '-c',
    'curl -sS --http2 --fail -w " %{http_code}\\n" -H "Authorization: Bearer $API_TOKEN" "$API/a" "$API/b"',
  ],
  'Python’s urllib': [
    'python3',
    '-c',
    `
import os, urllib.request
for path in ('/a', '/b'):
    request = urllib.request.Request(os.environ['API'] + path, headers={'Authorization': 'Bearer ' + os.environ['API_TOKEN']})
    with urllib.request.urlopen(request) as response:
        print(response.status, response.read().decode())
`,
  ],
}

test.each(Object.entries(clients))(
  '%s reaches its API, which echoes the secret in vain',
  async (_, [program = '', ...args]) => {
    const had: (string | undefined)[] = []
    await using at = await intercepted({
      http: (request, response) => {
        had.push(request.headers.authorization)
        response.setHeader('X-Echo', String(request.headers.authorization))
        response.end(`answer to ${request.url}: ${request.headers.authorization}`)
      },
    })
    using _lease = await at.lease()
    const { stdout } = await run(program, args, { env: environment(at), timeout: patienceMs })
    expect(had).toEqual([`Bearer ${token}`, `Bearer ${token}`])
    for (const path of ['/a', '/b']) expect(stdout).toContain(`answer to ${path}: Bearer ****`)
    expect(stdout.match(/200/g)).toHaveLength(2)
    expect(stdout).not.toContain(token)
    expect(at.violations).toEqual([])
  },
)

test('a POST of 1 MB and a download of 5 MB come through byte for byte', async () => {
  await using at = await intercepted({
    http: (request, response) => {
      let size = 0
      request.on('data', (part: Buffer) => (size += part.length))
      request.on('end', () => response.setHeader('X-Size', size).end(Buffer.alloc(5_000_000, 'abc')))
    },
  })
  using _ = await at.lease()
  const [program = '', ...args] = node(`
    const body = Buffer.alloc(1_000_000, 'x')
    const response = await fetch(process.env.API, { method: 'POST', body, headers: { authorization: 'Bearer ' + process.env.API_TOKEN } })
    const bytes = Buffer.from(await response.arrayBuffer())
    console.log(response.headers.get('x-size'), bytes.equals(Buffer.alloc(5_000_000, 'abc')))`)
  const { stdout } = await run(program, args, { env: environment(at), timeout: patienceMs })
  expect(stdout.trim()).toBe('1000000 true')
})

test('a stream of events arrives event by event, and an upload without a length goes up as it is written', async () => {
  let sendNext = (): void => undefined
  await using at = await intercepted({
    http: (request, response) => {
      if (request.url === '/seen') {
        response.end()
        sendNext()
      } else if (request.url === '/events') {
        const events = ['one', 'two', 'three'].map((word) => `data: ${word}\n\n`)
        response.setHeader('Content-Type', 'text/event-stream')
        sendNext = () => (events.length > 0 ? void response.write(events.shift()) : void response.end())
        sendNext()
      } else {
        // The first part is answered before there is a second one.
        request.once('data', (part: Buffer) => {
          let size = part.length
          response.write(`${request.headers['transfer-encoding']} `)
          request.on('data', (more: Buffer) => (size += more.length))
          request.on('end', () => response.end(`${size}`))
        })
      }
    },
  })
  using _ = await at.lease()
  const [program = '', ...args] = node(`
    const [api, headers] = [process.env.API, { authorization: 'Bearer ' + process.env.API_TOKEN }]
    const events = await fetch(api + '/events', { headers })
    for await (const part of events.body) {
      process.stdout.write(Buffer.from(part).toString().trim() + ';')
      await fetch(api + '/seen', { headers })
    }
    const { request } = await import('node:https')
    const up = request(api + '/upload', { method: 'POST', headers }, async (down) => {
      up.end(Buffer.alloc(20_000_000, 'y'))
      process.stdout.write((await down.setEncoding('utf8').toArray()).join(''))
    })
    up.write('first')`)
  const { stdout } = await run(program, args, { env: environment(at), timeout: patienceMs })
  expect(stdout).toBe('data: one;data: two;data: three;chunked 20000005')
})

test('git clones over https with the placeholder as its password', async () => {
  const had = new Set<string | undefined>()
  let root = ''
  await using at = await intercepted({
    http: (request, response) => {
      had.add(request.headers.authorization)
      if (request.headers.authorization === undefined)
        response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="git"' }).end()
      else gitBackend(root, request, response)
    },
  })
  root = `${at.dir.path}/repositories`
  const work = `${at.dir.path}/work`
  const env = { ...environment(at), GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_NOSYSTEM: '1' }
  const git = (...args: readonly string[]) => run('git', args, { env, timeout: patienceMs })
  await mkdir(root)
  await git('init', '-q', '-b', 'main', work)
  await writeFile(`${work}/file`, 'what is in it\n'.repeat(5000))
  await git('-C', work, 'add', '.')
  await git('-C', work, '-c', 'user.name=n', '-c', 'user.email=e@x', 'commit', '-qm', 'one')
  await git('clone', '-q', '--bare', work, `${root}/project.git`)
  using _ = await at.lease()
  const url = at.url.replace('://', `://user:${at.placeholder}@`)
  await git('clone', '-q', `${url}/project.git`, `${at.dir.path}/cloned`)
  const { stdout } = await git('-C', `${at.dir.path}/cloned`, 'log', '--format=%s')
  expect(stdout.trim()).toBe('one')
  expect([...had].filter((it) => it !== undefined)).toEqual([`Basic ${btoa(`user:${token}`)}`])
  expect(at.violations).toEqual([])
})

/** Git's own server for HTTP, as a CGI program. */
function gitBackend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'] ?? '/usr/bin:/bin',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method ?? 'GET',
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      REMOTE_USER: 'user',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  request.pipe(child.stdin)
  const parts: Buffer[] = []
  child.stdout.on('data', (part: Buffer) => parts.push(part))
  child.stdout.on('end', () => {
    const all = Buffer.concat(parts)
    const end = all.indexOf('\r\n\r\n')
    for (const line of all.subarray(0, end).toString().split('\r\n')) {
      const [name = '', value = ''] = line.split(': ')
      if (name === 'Status') response.statusCode = Number.parseInt(value, 10)
      else response.setHeader(name, value)
    }
    response.end(all.subarray(end + 4))
  })
}
