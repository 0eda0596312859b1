// Where the engine is, in every form that the docker CLI takes, and which of them nobody should use.
import { createHash } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeEndpoint, findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { openEngine } from '../../src/sandbox/docker/engine.ts'
import { testAuthority } from '../support/certificates.ts'
import { tempDir } from '../support/temp-dir.ts'

const noHome = { HOME: '/nonexistent' }

/** Writes what a client of an engine with TLS has. */
const certificatesIn = async (folder: string): Promise<Readonly<Record<'ca' | 'cert' | 'key', string>>> => {
  const { ca, issue } = await testAuthority(folder)
  const pem = { ca, ...(await issue('client')) }
  for (const [name, text] of Object.entries(pem)) await writeFile(join(folder, `${name}.pem`), text)
  return pem
}

test('with nothing said it is the usual socket', () => {
  expect(findEndpoint(noHome)).toEqual({
    kind: 'unix',
    socketPath: '/var/run/docker.sock',
    from: 'the usual socket',
  })
})

test.each([
  ['unix:///run/user/1000/docker.sock', { kind: 'unix', socketPath: '/run/user/1000/docker.sock' }],
  ['tcp://127.0.0.1:2375', { kind: 'tcp', host: '127.0.0.1', port: 2375, tls: null }],
  ['tcp://[::1]:80/', { kind: 'tcp', host: '::1', port: 80, tls: null }],
  ['ssh://build@engines.example:2222', { kind: 'ssh', destination: 'build@engines.example', port: 2222 }],
  ['ssh://engines.example', { kind: 'ssh', destination: 'engines.example', port: null }],
])('$DOCKER_HOST=%s is understood, and said the same way', (address, expected) => {
  const endpoint = findEndpoint({ ...noHome, DOCKER_HOST: address })
  expect(endpoint).toEqual({ ...expected, from: '$DOCKER_HOST' })
  expect(describeEndpoint(endpoint)).toBe(address.replace(/(?<=\d)\/$/, ''))
})

test.each([
  ['a path alone', '/var/run/docker.sock', 'expected unix://PATH'],
  ['a relative socket', 'unix://docker.sock', 'an absolute path'],
  ['a pipe of another system', 'npipe:////./pipe/docker_engine', 'expected unix://PATH'],
  ['another machine without TLS', 'tcp://10.1.2.3:2375', 'without TLS'],
  ['a name that only looks like loopback', 'tcp://127.0.0.1.example:2375', 'without TLS'],
  ['an option for ssh in the place of a host', 'ssh://-oProxyCommand=id', 'expected ssh://'],
  ['an option for ssh in the place of a user', 'ssh://-oProxyCommand%3Did@host', 'expected ssh://'],
])('%s is refused', (_, address, words) => {
  const reading = (): unknown => findEndpoint({ ...noHome, DOCKER_HOST: address })
  expect(reading).toThrow(expect.objectContaining({ code: 'ERR_ENGINE_ENDPOINT' }))
  expect(reading).toThrow(words)
})

test('a password in an address is refused, and not repeated', () => {
  const reading = (): unknown => findEndpoint({ ...noHome, DOCKER_HOST: 'tcp://me:hunter2@host:2376' })
  expect(reading).toThrow(expect.objectContaining({ code: 'ERR_ENGINE_ENDPOINT' }))
  expect(reading).not.toThrow('hunter2')
})

test('TLS takes its files from $DOCKER_CERT_PATH, and is refused where it would check nothing', async () => {
  await using folder = await tempDir()
  const pem = await certificatesIn(folder.path)
  const said = { ...noHome, DOCKER_HOST: 'tcp://engines.example', DOCKER_CERT_PATH: folder.path }
  expect(findEndpoint({ ...said, DOCKER_TLS_VERIFY: '1' })).toMatchObject({
    kind: 'tcp',
    port: 2376,
    tls: { ca: Buffer.from(pem.ca), cert: Buffer.from(pem.cert), key: Buffer.from(pem.key) },
  })
  expect(() => findEndpoint({ ...said, DOCKER_TLS: '1' })).toThrow('checks no certificate')
})

test.each(['ca', 'cert', 'key'])(
  'TLS with no %s, or with one that is none, is refused by its name',
  async (name) => {
    await using folder = await tempDir()
    await certificatesIn(folder.path)
    const said = { ...noHome, DOCKER_HOST: 'tcp://engines.example', DOCKER_CERT_PATH: folder.path }
    const reading = (): unknown => findEndpoint({ ...said, DOCKER_TLS_VERIFY: '1' })
    const refusal = (words: string): unknown =>
      expect.objectContaining({ code: 'ERR_ENGINE_ENDPOINT', message: expect.stringContaining(words) })
    await writeFile(join(folder.path, `${name}.pem`), 'none')
    expect(reading).toThrow(refusal(`the engine named by ${folder.path}/${name}.pem`))
    await rm(join(folder.path, `${name}.pem`))
    expect(reading).toThrow(
      refusal(`got no ${name}.pem in ${folder.path}; expected ca.pem, and cert.pem and key.pem where`),
    )
  },
)

test('a context is found by its name, $DOCKER_HOST goes before it, and one that is not there is refused', async () => {
  await using folder = await tempDir()
  const digest = createHash('sha256').update('far').digest('hex')
  const tls = join(folder.path, 'contexts/tls', digest, 'docker')
  await mkdir(join(folder.path, 'contexts/meta', digest), { recursive: true })
  await mkdir(tls, { recursive: true })
  const write = (docker: object): Promise<void> =>
    writeFile(
      join(folder.path, 'contexts/meta', digest, 'meta.json'),
      JSON.stringify({ Name: 'far', Endpoints: { docker } }),
    )
  await write({ Host: 'tcp://engines.example:2376', SkipTLSVerify: false })
  const { ca } = await certificatesIn(folder.path)
  await writeFile(join(tls, 'ca.pem'), ca)
  await writeFile(join(folder.path, 'config.json'), JSON.stringify({ currentContext: 'far' }))
  const said = { ...noHome, DOCKER_CONFIG: folder.path }
  const far = { kind: 'tcp', host: 'engines.example', tls: { ca: Buffer.from(ca) }, from: 'context "far"' }
  expect(findEndpoint(said)).toMatchObject(far)
  expect(findEndpoint({ ...said, DOCKER_CONTEXT: 'default' })).toMatchObject({ from: 'the usual socket' })
  expect(findEndpoint({ ...said, DOCKER_HOST: 'unix:///x' })).toMatchObject({ from: '$DOCKER_HOST' })
  expect(() => findEndpoint({ ...said, DOCKER_CONTEXT: 'gone' })).toThrow('no such context')
  await write({ Host: 'tcp://engines.example:2376', SkipTLSVerify: true })
  expect(() => findEndpoint(said)).toThrow('checks no certificate')
})

test('an engine that is not there says where it was looked for and why', async () => {
  await using folder = await tempDir()
  const socket = join(folder.path, 'docker.sock')
  using engine = await openEngine(findEndpoint({ DOCKER_HOST: `unix://${socket}` }), {})
  await expect(engine.info()).rejects.toMatchObject({
    code: 'ERR_ENGINE_UNREACHABLE',
    message: `the container engine at unix://${socket} ($DOCKER_HOST) does not answer: ENOENT; start it, or name another with DOCKER_HOST`,
  })
})
