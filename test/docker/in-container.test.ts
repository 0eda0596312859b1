// A daemon in a container with the socket of the engine outside: its paths are not the engine's, and it is told so.
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { configOf, fixture } from '../support/daemon.ts'
import { engineTest } from '../support/engine.ts'
import type { TestEngine } from '../support/own-engine.ts'
import { eventually } from '../support/eventually.ts'
import { nodeImage } from '../support/image.ts'
import { root } from '../support/source.ts'
import { tempDir } from '../support/temp-dir.ts'

/** Runs the command line in a container that has the engine's socket, and the repository elsewhere, until it has said so. */
const inside = async (at: TestEngine, args: readonly string[], expected: RegExp): Promise<void> => {
  await using folder = await tempDir()
  await chmod(folder.path, 0o755)
  const image = await nodeImage(at)
  const allowed = { allowed_commands: [{ name: 'node', path: '/usr/local/bin/node' }] }
  const config = configOf(
    { echo: fixture('echo', { image, package: null }) },
    { driver: 'docker', ...allowed },
  )
  await writeFile(join(folder.path, 'sallyport.yaml'), JSON.stringify(config), { mode: 0o644 })
  const container = await at.docker.createContainer({
    Image: image,
    Cmd: ['/usr/local/bin/node', '/elsewhere/dist/cli/main.js', ...args],
    Env: ['SALLYPORT_RUNTIME_DIR=/tmp/run', 'SALLYPORT_STATE_DIR=/tmp/state', 'HOME=/tmp'],
    HostConfig: {
      NetworkMode: 'none',
      Binds: [
        `${root}:/elsewhere:ro`,
        ...['passwd', 'group'].map((name) => `/etc/${name}:/etc/${name}:ro`),
        `${folder.path}/sallyport.yaml:/etc/sallyport/sallyport.yaml:ro`,
        `${at.environment.DOCKER_HOST.replace('unix://', '')}:/var/run/docker.sock`,
      ],
    },
  })
  try {
    await container.start()
    let said = ''
    await eventually(async () => {
      said = String(await container.logs({ stdout: true, stderr: true }))
      return expected.test(said)
    }).catch(() => undefined)
    expect(said).toMatch(expected)
  } finally {
    await container.remove({ force: true, v: true })
  }
}

const reason =
  'the engine has another \\S+ than this process, or none: it is outside of the container that this process is in'

engineTest('doctor says so of containers', async ({ engine }) => {
  await inside(engine, ['doctor'], new RegExp(`^.*containers +weak .*${reason}`, 'm'))
})

engineTest('its servers are refused with what differs, and where to run instead', async ({ engine }) => {
  await inside(engine, ['serve'], new RegExp(`${reason}.*; run sallyport where the engine runs`))
})
