// What befalls an engine in the midst of a launch: it is tried again, as any launch that failed, and told in the engine’s words.
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { configOf, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { handled } from '../support/handled.ts'
import { processesWith } from '../support/leaks.ts'
import { canStartEngine, ownEngine, type OwnEngine } from '../support/own-engine.ts'
import { sharedDaemon } from '../support/shared-daemon.ts'
import { slowEngine, type SlowEngine } from '../support/slow-engine.ts'
import { tempDir } from '../support/temp-dir.ts'

const restart = { schedule_s: [0.5], jitter: 0, steady_s: 60, start_attempts: 2 }
const boxed = (more: object = {}) => fixture('echo', { driver: 'docker', restart, ...more })
const config = configOf({
  attach: boxed(),
  start: boxed(),
  flaky: boxed({ runtime: 'flaky' }),
  echo: boxed(),
})

const start = ({ client }: TestDaemon, server: string) => client.call('servers/start', { server })
const instanceOf = async ({ client }: TestDaemon, server: string) =>
  (await client.call('servers/get', { server })).instances[0] ?? { state: null, restarts: 0 }
const comesUp = (at: TestDaemon, server: string) =>
  eventually(async () => {
    const { servers } = await at.client.call('servers/list', {})
    return servers.find(({ name }) => name === server)?.state === 'connected'
  })

describe.runIf(canStartEngine)('a launch is tried again', () => {
  const stack = new AsyncDisposableStack()
  let engine: OwnEngine
  let way: SlowEngine
  beforeAll(async () => {
    const { path } = stack.use(await tempDir())
    const flaky = join(path, 'flaky')
    const fails = 'case " $* " in *" create "*) exit 1 ;; esac'
    await writeFile(flaky, `#!/bin/sh\n${fails}\nexec runc "$@"\n`)
    await chmod(flaky, 0o755)
    engine = stack.use(await ownEngine({ runtimes: { flaky: { path: flaky } } }))
    way = stack.use(await slowEngine(engine.environment.DOCKER_HOST.replace('unix://', ''), /^nothing/))
  })
  afterAll(() => stack.disposeAsync())
  const shared = sharedDaemon(config, () => ({ DOCKER_HOST: way.address }))

  test.each(['attach', 'start'])('whose container somebody removed before its %s', async (request) => {
    const at = await shared.living()
    const asked = way.hold(new RegExp(`^POST \\S*/containers/[0-9a-f]+/${request}`))
    const refused = handled(
      expect(start(at, request)).rejects.toMatchObject({
        code: 'ERR_ENGINE_REFUSED',
        message: expect.stringMatching(/No such container/) as string,
      }),
    )
    await asked
    const label = [`io.sallyport.daemon=${at.client.hello.daemon}`, `io.sallyport.server=${request}`]
    for (const { Id } of await engine.docker.listContainers({ all: true, filters: { label } }))
      await engine.docker.getContainer(Id).remove({ force: true })
    way.letGo()
    await refused
    await comesUp(at, request)
    await at.client.call('servers/stop', { server: request })
  })

  test('where the runtime failed, as often as any start, and not for ever', async () => {
    const at = await shared.living()
    await expect(start(at, 'flaky')).rejects.toMatchObject({ code: 'ERR_ENGINE_REFUSED' })
    await eventually(async () => (await instanceOf(at, 'flaky')).state === 'failed')
    expect((await instanceOf(at, 'flaky')).restarts).toBe(1)
  })

  test('where the engine’s containerd had ended, and that is held against no server', async () => {
    const at = await shared.living()
    await start(at, 'echo')
    await at.client.call('servers/stop', { server: 'echo' })
    const [containerd = 0] = processesWith(`${engine.folder}/e/containerd/containerd.toml`)
    process.kill(containerd, 'SIGKILL')
    await expect(start(at, 'echo')).rejects.toMatchObject({
      code: 'ERR_ENGINE_UNREACHABLE',
      message: expect.stringMatching(/see that its containerd runs/) as string,
    })
    await comesUp(at, 'echo')
  })
})
