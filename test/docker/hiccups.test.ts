// What befalls an engine in the midst of a launch: it is tried again, as any launch that failed, and told in the engine’s words.
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { processesWith } from '../support/leaks.ts'
import { canStartEngine, ownEngine } from '../support/own-engine.ts'
import { slowEngine } from '../support/slow-engine.ts'
import { tempDir } from '../support/temp-dir.ts'

const restart = { schedule_s: [0.1], jitter: 0, steady_s: 60, start_attempts: 2 }
const boxed = (more: object = {}) =>
  configOf({ echo: fixture('echo', { driver: 'docker', restart, ...more }) })

const start = ({ client }: TestDaemon) => client.call('servers/start', { server: 'echo' })
const comesUp = (at: TestDaemon) =>
  eventually(async () => {
    const { servers } = await at.client.call('servers/list', {})
    return servers[0]?.state === 'connected'
  }, 30_000)

describe.runIf(canStartEngine)('a launch is tried again', () => {
  test.each(['attach', 'start'])('whose container somebody removed before its %s', async (request) => {
    await using engine = await ownEngine()
    const socket = engine.environment.DOCKER_HOST.replace('unix://', '')
    await using way = await slowEngine(socket, new RegExp(`^POST \\S*/containers/[0-9a-f]+/${request}`))
    await using at = await daemon(boxed(), { DOCKER_HOST: way.address })
    const refused = expect(start(at)).rejects.toMatchObject({
      code: 'ERR_ENGINE_REFUSED',
      message: expect.stringMatching(/No such container/) as string,
    })
    await way.asked
    for (const { Id } of await engine.docker.listContainers({ all: true }))
      await engine.docker.getContainer(Id).remove({ force: true })
    way.letGo()
    await refused
    await comesUp(at)
  })

  test('where the runtime failed, as often as any start, and not for ever', async () => {
    await using folder = await tempDir()
    const [path, broken] = [join(folder.path, 'flaky'), join(folder.path, 'broken')]
    const fails = `case " $* " in *" create "*) [ -e ${broken} ] && exit 1 ;; esac`
    await writeFile(path, `#!/bin/sh\n${fails}\nexec runc "$@"\n`)
    await chmod(path, 0o755)
    await writeFile(broken, '')
    await using engine = await ownEngine({ runtimes: { flaky: { path } } })
    await using at = await daemon(boxed({ runtime: 'flaky' }), engine.environment)
    await expect(start(at)).rejects.toMatchObject({ code: 'ERR_ENGINE_REFUSED' })
    const instance = async () =>
      (await at.client.call('servers/get', { server: 'echo' })).instances[0] ?? { state: null, restarts: 0 }
    await eventually(async () => (await instance()).state === 'failed', 30_000)
    expect((await instance()).restarts).toBe(1)
  })

  test('where the engine’s containerd had ended, and that is held against no server', async () => {
    await using engine = await ownEngine()
    await using at = await daemon(boxed(), engine.environment)
    await start(at)
    await at.client.call('servers/stop', { server: 'echo' })
    const [containerd = 0] = processesWith(`${engine.folder}/e/containerd/containerd.toml`)
    process.kill(containerd, 'SIGKILL')
    await expect(start(at)).rejects.toMatchObject({
      code: 'ERR_ENGINE_UNREACHABLE',
      message: expect.stringMatching(/see that its containerd runs/) as string,
    })
    await comesUp(at)
  })
})
