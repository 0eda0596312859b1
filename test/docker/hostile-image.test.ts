// Images whose files are made to change how they are confined: refused before anything of theirs runs, or without effect.
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { newDaemonId } from '../../src/lib/ids.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import type { Settings } from '../../src/schema/settings.ts'
import { engineTest } from '../support/engine.ts'
import type { TestEngine } from '../support/own-engine.ts'
import { type ImageSource, importImage } from '../support/image.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { textOf } from '../support/plan.ts'
import { buildProbe } from '../support/probe.ts'
import { expectRefusal } from '../support/refusal.ts'
import { rewritingEngine } from '../support/rewriting-engine.ts'

/** Where the engine is when it mounts, and where it is not any more when it starts: a link through it leads to two places. */
const elsewhere = '/proc/self/cwd'

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

/** Settings of a server whose command is the image's `/bin/says`, a static program that says its variables; and the image. */
const saysIn = async (at: TestEngine, { files, changes = [] }: ImageSource): Promise<Settings> => {
  const from = buildProbe('says')
  await importImage(at, 'hostile', { files: { '/bin/says': { from }, ...files }, changes })
  const image = 'sallyport-test/hostile'
  const mounts = [{ source: fixtures, target: '/data/of/mine', access: 'read', reason: 'a test' }]
  const more = { driver: 'docker', image, package: null, command: 'says', args: [], mounts }
  const settings = await settingsFor('unused', [], more)
  return { ...settings, allowedCommands: [{ name: 'says', path: '/bin/says', interpreter: 'none' }] }
}

describe('an image is refused', () => {
  engineTest.for<[string, ImageSource, string]>([
    [
      'with a link where PID 1 is mounted, to a program of its own',
      { files: { '/sallyport/init': { link: `${elsewhere}/bin/says` } } },
      'something at /sallyport',
    ],
    [
      'with a link in place of the folder that holds PID 1',
      { files: { '/sallyport': { link: `${elsewhere}/bin` } } },
      'something at /sallyport',
    ],
    [
      'with a link on the way to a mount, to where PID 1 is',
      { files: { '/data/of': { link: '/sallyport' } } },
      'a link at /data/of',
    ],
    ['with a volume over PID 1', { files: {}, changes: ['VOLUME /sallyport/'] }, 'a volume at /sallyport'],
    [
      'with a file where memory is mounted',
      { files: { '/home/user': { text: '' } } },
      'else than a directory at /home/user',
    ],
    [
      'with a link where memory is mounted',
      { files: { '/home': { link: '/bin' } } },
      'a link at /home, which leads to /bin',
    ],
    [
      'with a folder where a file is mounted',
      { files: { '/etc/hostname/of': { text: '' } } },
      '/etc/hostname',
    ],
    [
      'with a link in a circle',
      { files: { '/home/user': { link: 'user' } } },
      'a link in a circle at /home/user',
    ],
    [
      'with a file on the way to a mount',
      { files: { '/data': { text: '' } } },
      'else than a directory at /data',
    ],
    ['with a volume over its program', { files: {}, changes: ['VOLUME /bin'] }, 'and /bin/says in it'],
    ['with a volume within a mount', { files: {}, changes: ['VOLUME /data/of/mine/a'] }, 'another target'],
    [
      'with a volume on a file',
      { files: {}, changes: ['VOLUME /bin/says'] },
      'a volume at /bin/says, and there no',
    ],
    [
      'with a link that puts a volume over PID 1',
      { files: { '/a': { link: '/' } }, changes: ['VOLUME /a/sallyport'] },
      'at /sallyport, in the way of /sallyport',
    ],
    [
      'with a link that puts a volume in the kernel’s place',
      { files: { '/a': { link: '/proc' } }, changes: ['VOLUME /a/sys'] },
      'at /proc/sys, in the way of /proc',
    ],
    [
      'with a link that puts a volume around all',
      { files: { '/a/b': { link: '..' } }, changes: ['VOLUME /a/b'] },
      'at /, in the way of /sallyport',
    ],
    [
      'with a link that puts a volume over its program',
      { files: { '/a': { link: '/bin' } }, changes: ['VOLUME /a'] },
      'a volume at /bin, which is empty',
    ],
    [
      'with a link that puts a volume within a mount',
      { files: { '/a': { link: '/data/of' } }, changes: ['VOLUME /a/mine/b'] },
      'a volume at /a/mine/b, within the mount at /data/of/mine',
    ],
    [
      'with a link out of itself',
      { files: { '/etc/group': { link: '/proc/self/fd/0' } } },
      'not the image’s own',
    ],
    [
      'with more users than an engine reads',
      { files: { '/etc/passwd': { text: 'x'.repeat(70_000) } } },
      '70000 bytes',
    ],
    [
      'with a pipe where the engine reads its users',
      { files: { '/etc/passwd': { pipe: true } } },
      '/etc/passwd',
    ],
    [
      'with a link to a pipe where the engine reads its groups',
      { files: { '/etc/group': { link: '/etc/pipe' }, '/etc/pipe': { pipe: true } } },
      '/etc/group',
    ],
  ])('%s', async ([, source, words], { engine: at }) => {
    const settings = await saysIn(at, source)
    await using host = await launchHost({ environment: at.environment })
    await expectRefusal(() => launchProbe(settings, host), 'ERR_IMAGE_UNSAFE', words)
  })
})

// The kernel tells an ordinary daemon nothing of what another user runs.
engineTest.runIf(process.getuid?.() === 0)(
  'a first process that does and says what init does, and is another file, gets no orders',
  async ({ engine: at }) => {
    const settings = await saysIn(at, { files: { '/lib/other/init': { from: await findInitBinary() } } })
    const asked = (program: string): string => `"Entrypoint":["${program}"]`
    const socket = at.environment.DOCKER_HOST.replace('unix://', '')
    await using way = await rewritingEngine(socket, asked('/sallyport/init'), asked('/lib/other/init'))
    const daemon = newDaemonId()
    await using host = await launchHost({ daemon, environment: { DOCKER_HOST: way.address } })
    const words = 'is /lib/other/init and not Sallyport’s init'
    await expectRefusal(() => launchProbe(settings, host), 'ERR_SANDBOX_SETUP', words)
    expect(await at.engine.list([`io.sallyport.daemon=${daemon}`])).toEqual([])
  },
)

engineTest('a program that is its own interpreter is told of as that', async ({ engine: at }) => {
  const settings = await saysIn(at, { files: { '/bin/says': { text: '#!/bin/says\n' } } })
  await using host = await launchHost({ environment: at.environment })
  await expectRefusal(() => launchProbe(settings, host), 'ERR_SANDBOX_EXEC', 'no script that names it again')
})

engineTest(
  'a volume behind a link that leads to a place of the image’s own is taken',
  async ({ engine: at }) => {
    const files = { '/var/run': { link: '/run' } } as const
    const settings = await saysIn(at, { files, changes: ['VOLUME /var/run/mine'] })
    await using host = await launchHost({ environment: at.environment })
    await using server = await launchProbe(settings, host)
    server.stdin.end()
    expect(await textOf(server.stdout)).toMatch(/^it runs\n/)
  },
)

engineTest('a mount takes the place of a volume, which is nowhere then', async ({ engine: at }) => {
  const settings = await saysIn(at, { files: {}, changes: ['VOLUME /data/of/mine/', 'VOLUME /data'] })
  await using host = await launchHost({ environment: at.environment })
  await using server = await launchProbe(settings, host)
  const [container] = await at.engine.list([`io.sallyport.instance=${server.spec.instance}`])
  const facts = await at.engine.inspect(container?.Id ?? '')
  const there = facts?.Mounts.filter(({ Destination }) => Destination.startsWith('/data'))
  expect(there).toMatchObject([{ Destination: '/data/of/mine', Type: 'bind', RW: false }])
  expect(Object.keys(facts?.HostConfig.Tmpfs ?? {})).toContain('/data')
})

engineTest(
  'variables that a runtime obeys, and a folder that is none, have no effect',
  async ({ engine: at }) => {
    const settings = await saysIn(at, {
      files: {},
      changes: ['ENV NVIDIA_VISIBLE_DEVICES=all', 'WORKDIR /bin/says', 'VOLUME /data'],
    })
    await using host = await launchHost({ environment: at.environment })
    await using server = await launchProbe(settings, host)
    const [container] = await at.engine.list([`io.sallyport.instance=${server.spec.instance}`])
    const facts = await at.engine.inspect(container?.Id ?? '')
    server.stdin.end()
    const [out, exit] = await Promise.all([textOf(server.stdout), server.ended])
    expect(out).toMatch(/^it runs\n/)
    expect(out).not.toContain('NVIDIA')
    expect(exit).toMatchObject({ code: 0 })
    expect(facts?.Config.Env).toEqual(expect.arrayContaining(['NVIDIA_VISIBLE_DEVICES=']))
  },
)
