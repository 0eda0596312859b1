// Sallyport’s own image: its last stage, as the Dockerfile has it, on a base of this machine’s files, built and started.
import { execFile } from 'node:child_process'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { engineTest, type TestEngine } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { filesOfPrograms, type ImageSource, importImage, nodeFiles } from '../support/image.ts'
import { root } from '../support/source.ts'
import { tempDir } from '../support/temp-dir.ts'

const run = promisify(execFile)

/** What the lines of the last stage run. Packages can't be fetched here, so that what they bring is there already. */
const programs = ['sh', 'env', 'install', 'ln', 'rm', 'useradd', 'bwrap']

const base = async (at: TestEngine): Promise<string> => {
  const files: ImageSource['files'] = {
    ...(await nodeFiles()),
    ...(await filesOfPrograms(programs)),
    '/bin/sh': { from: '/usr/bin/sh' },
    '/usr/bin/apt-get': { text: '#!/bin/sh\nexit 0\n' },
    '/etc/passwd': { text: 'root:x:0:0:root:/root:/bin/sh\n' },
    '/etc/group': { text: 'root:x:0:\n' },
    '/etc/shadow': { text: 'root:*:19000::::::\n' },
    '/etc/gshadow': { text: 'root:*::\n' },
    '/etc/login.defs': {
      text: 'SYS_UID_MIN 100\nSYS_UID_MAX 19999\nSYS_GID_MIN 100\nSYS_GID_MAX 19999\nUSERGROUPS_ENAB yes\n',
    },
    '/var/lib/apt/lists/one': { text: '' },
    '/run/.keep': { text: '' },
  }
  await importImage(at, 'own-base', {
    files,
    changes: ['ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
  })
  return 'sallyport-test/own-base'
}

/** What the stage before leaves in /build: the built tree, with the packages that it runs with. */
const built = async (at: TestEngine): Promise<string> => {
  const { stdout } = await run('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: root })
  const packages = stdout.split('\n').filter((path) => /\/node_modules\/(@[^/]+\/)?[^/]+$/.test(path))
  const own = [
    'package.json',
    'LICENSE',
    'README.md',
    'dist',
    'profiles',
    'sandbox/seccomp',
    'sandbox/sallyport-stdio',
  ]
  const paths = [...packages.map((path) => path.slice(root.length)), ...own]
  const files = Object.fromEntries(paths.map((path) => [`/build/${path}`, { from: join(root, path) }]))
  await importImage(at, 'own-build', { files })
  return 'sallyport-test/own-build'
}

const build = async (at: TestEngine): Promise<void> => {
  await using folder = await tempDir()
  const text = await readFile(join(root, 'Dockerfile'), 'utf8')
  const last = text.slice(text.lastIndexOf('FROM ${BASE}'))
  expect(last).toContain('COPY --from=build')
  await writeFile(
    join(folder.path, 'Dockerfile'),
    `ARG BASE=${await base(at)}\nFROM ${await built(at)} AS build\n${last}`,
  )
  const stream = await at.docker.buildImage(
    { context: folder.path, src: ['Dockerfile'] },
    { t: 'sallyport-test/own', networkmode: 'none', rm: true, forcerm: true },
  )
  let said = ''
  for await (const chunk of stream) said += String(chunk)
  expect(said).toContain('Successfully built')
}

engineTest(
  'the image starts a daemon as an ordinary user, which is healthy and can build sandboxes',
  async ({ engine: at }) => {
    await build(at)
    await using folder = await tempDir()
    const config = join(folder.path, 'sallyport.yaml')
    await writeFile(config, 'version: 1\nservers: {}\n', { mode: 0o644 })
    await chmod(folder.path, 0o755)
    const { Config, Size } = await at.docker.getImage('sallyport-test/own').inspect()
    expect(Config).toMatchObject({ User: 'sallyport', Entrypoint: ['sallyport'], Cmd: ['serve'] })
    const { Size: baseSize } = await at.docker.getImage('sallyport-test/own-base').inspect()
    expect((Size - baseSize) / 1e6).toBeLessThan(60)
    const container = await at.docker.createContainer({
      Image: 'sallyport-test/own',
      // The image's own check, asked sooner.
      Healthcheck: { Test: [], Interval: 1e9, Timeout: 20e9, Retries: 20 },
      HostConfig: {
        NetworkMode: 'none',
        Binds: [`${config}:/etc/sallyport/sallyport.yaml:ro`],
        SecurityOpt: ['seccomp=unconfined', 'apparmor=unconfined'],
        MaskedPaths: [],
        ReadonlyPaths: [],
      },
    })
    try {
      await container.start()
      const state = await eventually(async () => {
        const { State } = await container.inspect()
        return State.Health?.Status === 'healthy' || !State.Running ? State : null
      }, 60_000)
      const logs = String(await container.logs({ stdout: true, stderr: true }))
      expect({ running: state.Running, logs }).toMatchObject({ running: true })
      const exec = await container.exec({ Cmd: ['sallyport', 'doctor', '--json'], AttachStdout: true })
      const stream = await exec.start({})
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk as Buffer)
      const text = Buffer.concat(chunks).toString()
      const report = JSON.parse(text.slice(text.indexOf('{'))) as {
        readonly controls: readonly { readonly control: string; readonly ok: boolean }[]
        readonly daemon: object | null
      }
      expect(report.controls).toContainEqual(expect.objectContaining({ control: 'sandbox', ok: true }))
      expect(report.daemon).not.toBeNull()
    } finally {
      await container.remove({ force: true, v: true })
    }
  },
  120_000,
)
