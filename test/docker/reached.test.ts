// Engines of this machine that are reached over a network: a server there is launched, spoken to and ended as at the usual socket.
import { chmod, cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { diagnoseEngine } from '../../src/sandbox/docker/diagnose.ts'
import { testAuthority } from '../support/certificates.ts'
import { engineTest } from '../support/engine.ts'
import { canStartEngine, ownEngine } from '../support/own-engine.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { expectEveryByte } from '../support/every-byte.ts'
import { canStartSshd, startSshd } from '../support/sshd.ts'
import { freePort } from '../support/free-port.ts'
import { tempDir } from '../support/temp-dir.ts'
import { patienceMs } from '../support/patience.ts'

/** Launches, sends and gets 1 MiB, asks it to end, and looks that nothing is left. */
const expectLaunch = async (environment: Readonly<Record<string, string>>): Promise<void> => {
  await using state = await tempDir()
  await chmod(state.path, 0o700)
  {
    await using host = await launchHost({ environment, stateDirectory: state.path })
    await using server = await launchProbe(
      await settingsFor('confined-echo.mjs', [], { driver: 'docker' }),
      host,
      null,
      AbortSignal.timeout(patienceMs),
    )
    await expectEveryByte(server)
    const { engine, daemon } = await host.docker()
    expect(await engine.list([`io.sallyport.daemon=${daemon}`])).toEqual([])
  }
  expect(await readdir(join(state.path, 'docker'))).toEqual([])
}

describe.runIf(canStartEngine)('over TCP', () => {
  test('with TLS a server is launched, and gets and gives every byte', async () => {
    await using folder = await tempDir()
    const authority = await testAuthority(folder.path)
    const certs = join(folder.path, 'certs')
    await mkdir(certs)
    await cp(authority.caFile, join(certs, 'ca.pem'))
    const write = async (name: string, prefix: string): Promise<void> => {
      const { cert, key } = await authority.issue(name)
      await writeFile(join(certs, `${prefix}cert.pem`), cert)
      await writeFile(join(certs, `${prefix}key.pem`), key)
    }
    await Promise.all([write('localhost', 'server-'), write('client', '')])
    const port = await freePort()
    const files = { tlscacert: 'ca.pem', tlscert: 'server-cert.pem', tlskey: 'server-key.pem' }
    const tls = Object.entries(files).map(([option, name]) => `--${option}=${join(certs, name)}`)
    await using _ = await ownEngine({ args: [`--host=tcp://localhost:${port}`, '--tlsverify', ...tls] })
    const environment = {
      DOCKER_HOST: `tcp://localhost:${port}`,
      DOCKER_TLS_VERIFY: '1',
      DOCKER_CERT_PATH: certs,
    }
    await expectLaunch(environment)
    // Another's authority, another name, and no TLS: each is told apart from an engine that is not there.
    const strange = join(folder.path, 'strange')
    await mkdir(strange)
    const other = await testAuthority(strange)
    await writeFile(join(certs, 'ca.pem'), other.ca)
    const why = async (more: Readonly<Record<string, string>>) =>
      JSON.stringify(await diagnoseEngine({ ...environment, ...more }))
    expect(await why({})).toContain('TLS does not hold')
    await cp(authority.caFile, join(certs, 'ca.pem'))
    expect(await why({ DOCKER_HOST: `tcp://127.0.0.1:${port}` })).toContain(
      'for the name by which it is reached',
    )
    expect(await why({ DOCKER_TLS_VERIFY: '' })).toContain('say DOCKER_TLS_VERIFY=1')
  })
})

describe.runIf(canStartSshd)('over a real sshd', () => {
  engineTest('a server is launched, and gets and gives every byte', async ({ engine: { environment } }) => {
    await using sshd = await startSshd(environment)
    const PATH = `${sshd.clientFolder}:${process.env['PATH'] ?? ''}`
    await expectLaunch({ DOCKER_HOST: `ssh://root@127.0.0.1:${sshd.port}`, PATH })
    // Nobody lets in whom nobody knows.
    const host = await launchHost({
      environment: { DOCKER_HOST: `ssh://nobody@127.0.0.1:${sshd.port}`, PATH },
    })
    await using _ = host
    await expect(host.docker()).rejects.toMatchObject({ code: 'ERR_ENGINE_UNREACHABLE' })
  })
})

engineTest('over ssh a server is launched, and gets and gives every byte', async ({ engine }) => {
  await using folder = await tempDir()
  const socket = engine.environment.DOCKER_HOST.replace('unix://', '')
  // What stands at the end of a session: the streams joined to the engine's socket, until the engine ends its own.
  const node = join(folder.path, 'node')
  await symlink(process.execPath, node) // its own path may have a space
  const program = `#!${node}
const socket = require('node:net').connect({ path: ${JSON.stringify(socket)}, allowHalfOpen: true })
process.stdin.pipe(socket).on('data', (bytes) => process.stdout.write(bytes) || socket.pause())
process.stdout.on('drain', () => socket.resume())
socket.on('end', () => process.stdout.write('', () => process.exit(0)))`
  await writeFile(join(folder.path, 'ssh'), program)
  await chmod(join(folder.path, 'ssh'), 0o755)
  await expectLaunch({ DOCKER_HOST: 'ssh://me@there', PATH: `${folder.path}:${process.env['PATH'] ?? ''}` })
})
