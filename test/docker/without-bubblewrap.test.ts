// Hosts that have an engine and no bubblewrap: daemons, and doctor, in a mount namespace where /usr/bin is empty.
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { configOf, fixture, main, place, type Place, type Ran } from '../support/daemon.ts'
import { engineTest } from '../support/engine.ts'
import { canStartEngine, type TestEngine } from '../support/own-engine.ts'
import { eventually } from '../support/eventually.ts'
import { nodeImage } from '../support/image.ts'
import { textOf } from '../support/plan.ts'

/** The command line where nothing is in /usr/bin: what it said, and how it ended. */
const startWithout = (at: Place, environment: TestEngine['environment'], args: readonly string[]) => {
  const script = 'mount -t tmpfs none /usr/bin && exec "$@"'
  const argv = ['--mount', '--propagation', 'private', '/bin/sh', '-c', script, 'sh']
  const child = spawn('unshare', [...argv, process.execPath, main, ...args], {
    env: { ...at.env, ...environment, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const status = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? -1)))
  const ran = Promise.all([textOf(child.stdout), textOf(child.stderr), status]).then(
    ([stdout, stderr, code]): Ran => ({ stdout, stderr, status: code }),
  )
  return { child, ran }
}

/** Servers in containers of an image, unless their entries say otherwise. */
const config = async (at: TestEngine, bare: object = {}): Promise<object> => {
  const image = await nodeImage(at)
  const more = { driver: 'docker', allowed_commands: [{ name: 'node', path: '/usr/local/bin/node' }] }
  return configOf({ echo: fixture('echo', { image }), ...bare }, more)
}

const bubblewrapped = { bare: fixture('echo', { driver: 'bubblewrap' }) }
const withoutTest = engineTest.skipIf(!canStartEngine)

withoutTest(
  'a daemon whose servers are all in containers serves them, and refuses what needs bubblewrap by name',
  async ({ engine }) => {
    await using at = await place(await config(engine))
    const { child, ran } = startWithout(at, engine.environment, ['serve'])
    try {
      const operator = await eventually(async () =>
        child.exitCode === null ? at.connect('operator').catch(() => null) : ran,
      )
      if ('status' in operator) throw new Error(`serve ended: ${operator.stderr}`)
      await using client = operator
      const call = (server: string) =>
        client.call('tools/call', { server, tool: 'echo', arguments: { text: 'from a container' } })
      expect(JSON.stringify(await call('echo'))).toContain('from a container')
      await writeFile(at.config, JSON.stringify(await config(engine, bubblewrapped)))
      await client.call('daemon/reload', {})
      await expect(call('bare')).rejects.toMatchObject({
        message: expect.stringContaining('bwrap is not installed'),
      })
      expect(JSON.stringify(await call('echo'))).toContain('from a container')
    } finally {
      child.kill('SIGTERM')
    }
    expect(await ran).toMatchObject({ status: 0 })
  },
)

withoutTest('a daemon with a server that needs bubblewrap does not start', async ({ engine }) => {
  await using at = await place(await config(engine, bubblewrapped))
  const { stderr, status } = await startWithout(at, engine.environment, ['serve']).ran
  expect({ stderr, status }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/bubblewrap: bwrap is not installed; as root: apt-get install bubblewrap/),
  })
})

withoutTest('doctor says which driver there is, and fails only where there is none', async ({ engine }) => {
  await using at = await place()
  const docker = await startWithout(at, engine.environment, ['doctor']).ran
  expect(docker.stdout).toMatch(/^bubblewrap +weak .*bwrap is not installed/m)
  expect(docker.stdout).toMatch(/^drivers +docker$/m)
  expect(docker.status).toBe(0)
  const nowhere = { DOCKER_HOST: 'unix:///nonexistent/docker.sock' }
  const none = await startWithout(at, nowhere, ['doctor']).ran
  expect(none.stdout).toMatch(/^bubblewrap +not .*bwrap is not installed/m)
  expect(none.stdout).toMatch(/^drivers +none/m)
  expect(none.status).toBe(1)
})
