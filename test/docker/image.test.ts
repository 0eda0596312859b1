// Servers in images: pinned to what nobody can change, run with nothing but the image’s files, never pulled by a launch.
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { labels } from '../../src/sandbox/docker/container.ts'
import type { Settings } from '../../src/schema/settings.ts'
import { compile } from '../support/compile.ts'
import { engineTest } from '../support/engine.ts'
import type { TestEngine } from '../support/own-engine.ts'
import { importImage, nodeFiles } from '../support/image.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { textOf } from '../support/plan.ts'
import { expectRefusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'

const looks = `
const fs = require('node:fs')
const writable = (path) => { try { fs.writeFileSync(path + '/x', ''); return true } catch { return false } }
console.log(JSON.stringify({ env: process.env, argv: process.argv, roots: fs.readdirSync('/'), usr: fs.readdirSync('/usr'),
  etc: fs.readdirSync('/etc'), writable: ['/', '/code', '/data', '/tmp', '/etc', '/home/user'].filter(writable), ids: [process.getuid(), process.getgid()] }))`

/** Node, a script, and everything that an image can ask for and should not get. */
const greedyImage = async (at: TestEngine): Promise<string> =>
  importImage(at, 'greedy', {
    files: { ...(await nodeFiles()), '/code/looks.cjs': { text: looks } },
    changes: [
      'ENV IMAGE_SAYS=what-no-server-should-see LD_PRELOAD=/code/evil.so NODE_OPTIONS=--require=/code/evil.js',
      'USER 0',
      'VOLUME /data',
      'WORKDIR /code',
      'ENTRYPOINT ["/code/entry"]',
      'CMD ["from-the-image"]',
      'HEALTHCHECK --interval=1s CMD ["/usr/local/bin/node", "-e", "1"]',
      'EXPOSE 80',
      'LABEL com.example.run-on-host=evil io.sallyport.daemon=another',
    ],
  })

/** Settings of a server whose command is the image's own Node. */
const serverIn = async (image: string, more: Readonly<Record<string, unknown>> = {}): Promise<Settings> => {
  const args = ['/code/looks.cjs', 'an-argument']
  const settings = await settingsFor('unused', [], { driver: 'docker', image, package: null, args, ...more })
  return { ...settings, allowedCommands: [{ name: 'node', path: '/usr/local/bin/node', interpreter: null }] }
}

describe('a server in an image', () => {
  engineTest('runs the image’s files, and the image says nothing of how', async ({ engine: at }) => {
    const id = await greedyImage(at)
    const settings = await serverIn(id)
    await using host = await launchHost({ environment: at.environment })
    const volumes = (await at.docker.listVolumes()).Volumes.length
    await using server = await launchProbe(settings, host)
    const [container] = await at.engine.list([`${labels.instance}=${server.spec.instance}`])
    expect(container?.Labels).toMatchObject({
      'com.example.run-on-host': '',
      [labels.daemon]: expect.stringMatching(/^d-/),
    })
    server.stdin.end()
    const [out, err] = await Promise.all([textOf(server.stdout), textOf(server.stderr)])
    expect({ err, exit: await server.ended }).toEqual({
      err: '',
      exit: { code: 0, signal: null, reason: 'exited' },
    })
    const seen = JSON.parse(out) as Record<string, string[]> & { env: Record<string, string> }
    expect(seen.argv).toEqual(['/usr/local/bin/node', '/code/looks.cjs', 'an-argument'])
    expect(JSON.stringify(seen.env)).not.toMatch(/IMAGE_SAYS|LD_PRELOAD|NODE_OPTIONS/)
    expect(seen.usr).toEqual(['local'])
    expect(seen.writable).toEqual(['/data', '/tmp', '/home/user'])
    expect(seen.ids).toEqual([1000, 1000])
    expect((await at.docker.listVolumes()).Volumes.length).toBe(volumes)
  })

  engineTest('runs FROM scratch, a static program and nothing else', async ({ engine: at }) => {
    await using folder = await tempDir()
    const source = '#include <stdio.h>\nint main(void) { puts("from scratch"); return 9; }'
    const program = compile(join(folder.path, 'hello'), source)
    await importImage(at, 'scratch', { files: { '/hello': { from: program } } })
    const settings = await serverIn('sallyport-test/scratch', { command: 'hello', args: [] })
    const named = (interpreter: string | null): Settings => ({
      ...settings,
      allowedCommands: [{ name: 'hello', path: '/hello', interpreter }],
    })
    await using host = await launchHost({ environment: at.environment })
    await using server = await launchProbe(named('none'), host)
    expect(await textOf(server.stdout)).toBe('from scratch\n')
    expect(await server.ended).toMatchObject({ code: 9 })
    await expectRefusal(() => launchProbe(named(null), host), 'ERR_COMMAND_NOT_ALLOWED', 'interpreter: none')
  })

  engineTest('is held to what its tag led to when it was registered', async ({ engine: at }) => {
    const [first, second] = ['one', 'two'].map((text) => ({
      files: { '/bin/program': { text: `#!${text}` } },
    }))
    await importImage(at, 'moving', first ?? { files: {} })
    const settings = {
      ...(await serverIn('sallyport-test/moving', { command: 'program', args: [] })),
      allowedCommands: [{ name: 'program', path: '/bin/program', interpreter: 'none' }],
    }
    const server = settings.servers.get('probe')
    if (server === undefined) throw new Error('no server')
    await using host = await launchHost({ environment: at.environment })
    const registrations = host.registrationsOf(settings)
    const registered = await registrations.verified(server)
    expect(registered.image).toMatchObject({ id: expect.stringMatching(/^sha256:/) })
    expect(await registrations.verified(server)).toEqual(registered)
    await importImage(at, 'moving', second ?? { files: {} })
    await expectRefusal(() => registrations.verified(server), 'ERR_IMAGE_CHANGED', 'name it by its digest')
    await expectRefusal(() => launchProbe(settings, host), 'ERR_IMAGE_CHANGED')
    registrations.forget([server])
    const again = await registrations.verified(server)
    expect(again.command.file.sha256).not.toBe(registered.command.file.sha256)
  })

  engineTest('that the engine does not have is not pulled by a launch', async ({ engine: at }) => {
    await using host = await launchHost({ environment: at.environment })
    const settings = await serverIn(`127.0.0.1:1/never/pulled@sha256:${'0'.repeat(64)}`)
    await expectRefusal(
      () => launchProbe(settings, host),
      'ERR_IMAGE_MISSING',
      'sallyport install docker:127.0.0.1:1/never',
    )
  })

  engineTest.for([
    ['no path that the image has', { path: '/nowhere/node', interpreter: null }, 'ERR_COMMAND_NOT_FOUND'],
    ['a folder', { path: '/code', interpreter: 'none' }, 'ERR_COMMAND_NOT_FOUND'],
  ] as const)('refuses a command that is %s', async ([, allowed, code], { engine: at }) => {
    const id = await importImage(at, 'refused', { files: { '/code/looks.cjs': { text: looks } } })
    const settings = { ...(await serverIn(id)), allowedCommands: [{ name: 'node', ...allowed }] }
    await using host = await launchHost({ environment: at.environment })
    await expectRefusal(() => launchProbe(settings, host), code, '/')
  })
})
