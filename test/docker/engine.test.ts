// The engine's own answers: what Sallyport asks of one, and what it makes of an engine that fails it.
import { cp, writeFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { type ContainerPlan, openEngine } from '../../src/sandbox/docker/engine.ts'
import { testAuthority } from '../support/certificates.ts'
import { compile } from '../support/compile.ts'
import { engineTest } from '../support/engine.ts'
import { handled } from '../support/handled.ts'
import { canStartEngine, gvisor, hasGvisor, ownEngine, type TestEngine } from '../support/own-engine.ts'
import { eventually } from '../support/eventually.ts'
import { importImage, nodeImage } from '../support/image.ts'
import { freePort } from '../support/free-port.ts'
import { tempDir } from '../support/temp-dir.ts'

const echo = `#include <unistd.h>
int main(void) { char b[65536]; for (long n; (n = read(0, b, sizeof b)) > 0;) write(1, b, n); return 7; }`

/** An image of one static program, FROM scratch as it were. */
const echoImage = async (engine: TestEngine): Promise<string> => {
  await using folder = await tempDir()
  const program = compile(join(folder.path, 'echo'), echo)
  return await importImage(engine, 'echo', {
    files: { '/echo': { from: program } },
    changes: ['CMD ["/echo"]'],
  })
}

const plan = (image: string): ContainerPlan => ({
  Image: image,
  Labels: { 'sallyport.test': 'engine' },
  OpenStdin: true,
  StdinOnce: true,
  AttachStdin: true,
  AttachStdout: true,
  AttachStderr: true,
  HostConfig: { NetworkMode: 'none' },
})

describe('a container through its life', () => {
  engineTest('is created, attached to, started, waited for and removed', async ({ engine: it }) => {
    const { engine } = it
    const id = await engine.create(`sallyport-test-${process.pid}`, plan(await echoImage(it)))
    onTestFinished(() => engine.remove(id))
    const stdin = await engine.attach(id, 'stdin')
    const stdout = await engine.attach(id, 'stdout')
    await engine.start(id)
    const ended = handled(engine.wait(id))
    stdin.write('hello')
    // One byte of stream, three of nothing, four of length, then the bytes.
    const frame = await eventually(() => stdout.read(13) as Buffer | null)
    expect(frame).toEqual(Buffer.from('\x01\0\0\0\0\0\0\x05hello', 'latin1'))
    stdin.end()
    expect(await ended).toBe(7)
    await engine.kill(id, 'SIGKILL')
    expect((await engine.list(['sallyport.test=engine'])).map(({ Id }) => Id)).toContain(id)
    await engine.remove(id)
    expect(await engine.inspect(id)).toBeNull()
    await engine.remove(id)
    await engine.kill(id, 'SIGKILL')
  })

  engineTest('a refusal has the engine’s own words and its status', async ({ engine: { engine } }) => {
    const refused = engine.create('x', plan('sallyport-test/nowhere'))
    await expect(refused).rejects.toMatchObject({
      code: 'ERR_ENGINE_REFUSED',
      message: expect.stringMatching(/refused to create: No such image: sallyport-test\/nowhere/),
      details: { status: 404 },
    })
    expect(await engine.image('sallyport-test/nowhere')).toBeNull()
  })

  engineTest('a request looks into no connection that is open', async ({ engine: { engine } }) => {
    let looks = 0
    const value = (): string => `look ${++looks}`
    Object.defineProperty(Socket.prototype, inspect.custom, { value, configurable: true })
    onTestFinished(() => void Reflect.deleteProperty(Socket.prototype, inspect.custom))
    const events = await engine.events('sallyport.test=engine', () => undefined)
    onTestFinished(() => void events.destroy())
    await engine.info()
    expect(looks).toBe(0)
    expect(inspect(new Socket())).toBe('look 1')
  })

  engineTest('an image of this machine’s Node runs it', async ({ engine: it }) => {
    const id = await it.engine.create(`sallyport-test-node-${process.pid}`, {
      ...plan(await nodeImage(it)),
      Cmd: [
        '/usr/local/bin/node',
        '-e',
        'process.exit(process.version === process.argv[1] ? 42 : 1)',
        process.version,
      ],
    })
    onTestFinished(() => it.engine.remove(id))
    await it.engine.start(id)
    expect(await it.engine.wait(id)).toBe(42)
  })
})

describe.runIf(canStartEngine)('an engine that fails', () => {
  test('one that is stopped is given up on after the deadline, and one that comes back is used again', async () => {
    await using it = await ownEngine()
    const { engine } = it
    const id = await engine.create('here', plan(await echoImage(it)))
    it.dockerd.kill('SIGSTOP')
    await expect(engine.inspect(id, { ms: 200 })).rejects.toMatchObject({
      code: 'ERR_ENGINE_TIMEOUT',
      details: { request: 'inspect', ms: 200 },
    })
    const waiting = new AbortController()
    const waited = engine.wait(id, { signal: waiting.signal })
    waiting.abort(new Error('no longer wanted'))
    await expect(waited).rejects.toThrow('no longer wanted')
    it.dockerd.kill('SIGCONT')
    expect(await engine.inspect(id)).toMatchObject({ Id: id })
  })

  test('one that is killed is unreachable, a wait on it ends, and after a restart its containers are there', async () => {
    await using it = await ownEngine()
    const { engine } = it
    const id = await engine.create('here', plan(await echoImage(it)))
    await engine.start(id)
    const ended = engine.wait(id)
    ended.catch(() => null)
    it.dockerd.kill('SIGKILL')
    await expect(ended).rejects.toMatchObject({ code: 'ERR_ENGINE_UNREACHABLE' })
    await expect(engine.info()).rejects.toMatchObject({ code: 'ERR_ENGINE_UNREACHABLE' })
    await it.restart()
    expect(await engine.inspect(id)).toMatchObject({ Id: id })
    await engine.remove(id)
  })

  test('over TCP it is spoken to by TLS alone, with both sides’ certificates checked', async () => {
    await using folder = await tempDir()
    const authority = await testAuthority(folder.path)
    const issue = async (name: string): Promise<{ cert: string; key: string }> => {
      const made = await authority.issue(name)
      const [cert, key] = [join(folder.path, `${name}.cert`), join(folder.path, `${name}.key`)]
      await writeFile(cert, made.cert)
      await writeFile(key, made.key)
      return { cert, key }
    }
    const server = await issue('localhost')
    const port = await freePort()
    const tls = [
      '--tlsverify',
      `--tlscacert=${authority.caFile}`,
      `--tlscert=${server.cert}`,
      `--tlskey=${server.key}`,
    ]
    await using _ = await ownEngine({ args: [`--host=tcp://localhost:${port}`, ...tls] })
    const good = { ca: authority.caFile, ...(await issue('client')) }
    const infoWith = async (files: Partial<typeof good>): Promise<unknown> => {
      await using certs = await tempDir()
      for (const [name, file] of Object.entries(files)) await cp(file, join(certs.path, `${name}.pem`))
      const said = {
        DOCKER_HOST: `tcp://localhost:${port}`,
        DOCKER_TLS_VERIFY: '1',
        DOCKER_CERT_PATH: certs.path,
      }
      using engine = await openEngine(findEndpoint(said), {})
      return await engine.info()
    }
    expect(await infoWith(good)).toMatchObject({ OSType: 'linux' })
    await expect(infoWith({ ca: good.ca })).rejects.toMatchObject({ code: 'ERR_ENGINE_UNREACHABLE' })
    await using elsewhere = await tempDir()
    const strange = await testAuthority(elsewhere.path)
    await expect(infoWith({ ...good, ca: strange.caFile })).rejects.toMatchObject({
      code: 'ERR_ENGINE_UNREACHABLE',
      message: expect.stringMatching(/SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE/),
    })
    await expect(infoWith({ cert: good.cert, key: good.key })).rejects.toMatchObject({
      code: 'ERR_ENGINE_ENDPOINT',
      message: expect.stringContaining('got no ca.pem in'),
    })
  })
})

test.runIf(hasGvisor)('gVisor’s runsc runs an image where the engine has it', async () => {
  await using it = await ownEngine({ runtimes: gvisor })
  const { engine } = it
  expect(Object.keys((await engine.info()).Runtimes)).toContain('runsc')
  const image = await echoImage(it)
  const id = await engine.create('here', {
    ...plan(image),
    HostConfig: { NetworkMode: 'none', Runtime: 'runsc' },
  })
  const stream = await engine.attach(id, 'stdin')
  await engine.start(id)
  stream.end('hello')
  expect(await engine.wait(id)).toBe(7)
})
