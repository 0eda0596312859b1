// Sallyport’s own image: the Dockerfile as it is, both stages, on a base of this machine’s packages, built and started.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, realpath, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type Docker from 'dockerode'
import { expect } from 'vitest'
import { debianPart } from '../support/debian.ts'
import { engineTest } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { copyNpmCache } from '../support/npm-cache.ts'
import { root } from '../support/source.ts'
import { tempDir } from '../support/temp-dir.ts'

const said = async (program: string, args: readonly string[]): Promise<string> =>
  (await promisify(execFile)(program, args, { cwd: root })).stdout.trim()

/** What the Dockerfile asks apt-get for, which finds it installed already, and what Node loads. */
const packages = ['apt', 'gcc', 'libc6-dev', 'make', 'bubblewrap', 'passwd', 'libstdc++6', 'mawk']

const texts: Readonly<Record<string, string>> = {
  '/etc/passwd': 'root:x:0:0:root:/root:/bin/sh\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n',
  '/etc/group': 'root:x:0:\nnogroup:x:65534:\n',
  '/etc/shadow': 'root:*:19000::::::\n',
  '/etc/gshadow': 'root:*::\n',
}

/** No registry is there to ask, and no script has to fetch the Node that the base brings anyway. */
const changes = [
  'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  'ENV npm_config_cache=/var/cache/npm npm_config_offline=true npm_config_ignore_scripts=true',
]

const base = 'sallyport-test/own-base'
const image = 'sallyport-test/own'

/** The Debian and the Node that `node:24-bookworm-slim` has, with the packages of both stages, apt’s and npm’s. */
const makeBase = async (docker: Docker): Promise<void> => {
  await using folder = await tempDir()
  const at = (path: string): string => join(folder.path, path)
  const { paths, status } = await debianPart(packages)
  for (const [path, text] of Object.entries({ ...texts, '/var/lib/dpkg/status': status })) {
    await mkdir(dirname(at(path)), { recursive: true })
    await writeFile(at(path), text)
  }
  const npm = dirname(dirname(await realpath(await said('which', ['npm']))))
  await cp(join(root, 'node_modules/node/bin/node'), at('/usr/local/bin/node'))
  await mkdir(at('/usr/local/lib/node_modules'), { recursive: true })
  await promisify(execFile)('cp', ['-rL', npm, at('/usr/local/lib/node_modules/npm')])
  await promisify(execFile)('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', at('/usr/local/bin/npm')])
  await copyNpmCache(at('/var/cache/npm'))
  const ours = (await readdir(folder.path)).toSorted()
  const owner = ['--owner=0', '--group=0']
  const places = ['-C', folder.path, ...ours, '-C', '/', '--no-recursion', '-T', '-']
  const tar = spawn('tar', [...owner, '-cf', '-', ...places], { stdio: ['pipe', 'pipe', 'inherit'] })
  const theirs = paths.filter((path) => !existsSync(at(path)))
  tar.stdin.end(theirs.map((path) => `${path.slice(1)}\n`).join(''))
  const answer = await docker.importImage(tar.stdout, { repo: base, tag: 'latest', changes })
  answer.resume()
  await once(answer, 'end')
}

/** Builds what a clean clone has, and returns what the first stage left, which has no name. */
const build = async (docker: Docker): Promise<string> => {
  const files = await said('git', ['-c', 'safe.directory=*', 'ls-files'])
  const stream = await docker.buildImage(
    { context: root, src: files.split('\n') },
    { t: image, buildargs: { BASE: base }, networkmode: 'none', rm: true, forcerm: true },
  )
  let log = ''
  for await (const chunk of stream) log += String(chunk)
  expect(log).toContain('Successfully tagged')
  const untilLast = log.slice(0, log.lastIndexOf(' : FROM '))
  const firstStage = [...untilLast.matchAll(/---\\u003e (\w{12})/g)].at(-1)?.[1]
  if (firstStage === undefined) throw new Error(`the engine names no first stage: ${log.slice(-2000)}`)
  return firstStage
}

/** A server, for a sandbox in there. */
const withEcho = {
  version: 1,
  allowed_commands: [{ name: 'node', path: '/usr/local/bin/node' }],
  rules: [{ permission: 'mcp:*:*', action: 'allow' }],
  servers: {
    echo: {
      command: 'node',
      args: ['/app/echo.mjs'],
      package: { source: '/srv/servers', target: '/app' },
      justification: 'says what it hears',
      profile: 'node',
      trust: 'trusted',
      acceptance: 'first-use',
    },
  },
}

/** What the command line says in there. */
const saidInside = async (container: Docker.Container, args: readonly string[]): Promise<string> => {
  const exec = await container.exec({ Cmd: ['sallyport', ...args], AttachStdout: true })
  const chunks: Buffer[] = []
  for await (const chunk of await exec.start({})) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

engineTest.skipIf(!existsSync('/var/lib/dpkg/status'))(
  'the image starts a daemon as an ordinary user, which is healthy and runs a server in a sandbox',
  async ({ engine: { docker } }) => {
    await using images = new AsyncDisposableStack()
    const removed = (name: string): void =>
      images.defer(async () => {
        await docker.getImage(name).remove()
      })
    await makeBase(docker)
    removed(base)
    const firstStage = await build(docker)
    removed(firstStage)
    removed(image)
    await using folder = await tempDir()
    const config = join(folder.path, 'sallyport.yaml')
    await writeFile(config, JSON.stringify(withEcho), { mode: 0o644 })
    await chmod(folder.path, 0o755)
    const { Config, Size } = await docker.getImage(image).inspect()
    expect(Config).toMatchObject({ User: 'sallyport', Entrypoint: ['sallyport'], Cmd: ['serve'] })
    const { Size: baseSize } = await docker.getImage(base).inspect()
    expect((Size - baseSize) / 1e6).toBeLessThan(60)
    const container = await docker.createContainer({
      Image: image,
      // The image's own check, asked sooner.
      Healthcheck: { Test: [], Interval: 1e9, Timeout: 20e9, Retries: 20 },
      HostConfig: {
        NetworkMode: 'none',
        Binds: [
          `${config}:/etc/sallyport/sallyport.yaml:ro`,
          `${join(root, 'test/fixtures/servers')}:/srv/servers:ro`,
        ],
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
      })
      const logs = String(await container.logs({ stdout: true, stderr: true }))
      expect({ running: state.Running, logs }).toMatchObject({ running: true })
      const text = await saidInside(container, ['doctor', '--json'])
      const report = JSON.parse(text.slice(text.indexOf('{'))) as {
        readonly controls: readonly { readonly control: string; readonly ok: boolean }[]
        readonly daemon: object | null
      }
      expect(report.controls).toContainEqual(expect.objectContaining({ control: 'sandbox', ok: true }))
      expect(report.daemon).not.toBeNull()
      const called = await saidInside(container, ['call', 'echo', 'echo', '--args', '{"text":"hello"}'])
      expect(called).toContain('{"text":"hello"}')
    } finally {
      await container.remove({ force: true, v: true })
    }
  },
  900_000,
)
