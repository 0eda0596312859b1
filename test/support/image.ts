// Images for tests, made of files of this machine, since no registry is there to pull from.
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmod, cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { TestEngine } from './own-engine.ts'
import { root } from './source.ts'
import { tempDir } from './temp-dir.ts'

/** What an image holds, and what it asks for. */
export interface ImageSource {
  /** Path in the image: a file or folder of this machine, an executable text, a link, or a pipe */
  readonly files: Readonly<
    Record<
      string,
      | { readonly from: string }
      | { readonly text: string }
      | { readonly link: string }
      | { readonly pipe: true }
    >
  >
  /** Lines of a Dockerfile: ENV, VOLUME, USER, HEALTHCHECK … */
  readonly changes?: readonly string[]
}

const ownNode = join(root, 'node_modules/node/bin/node')

/**
 * Imports an image under `sallyport-test/NAME` and returns its id, `sha256:…`. It stays with the engine: an image of the
 * same name is replaced, and what an engine of the test's own holds goes away with it.
 */
export const importImage = async (
  { docker }: Pick<TestEngine, 'docker'>,
  name: string,
  { files, changes = [] }: ImageSource,
): Promise<string> => {
  await using stage = await tempDir()
  for (const folder of ['tmp', 'proc', 'dev', 'sys', 'etc']) await mkdir(join(stage.path, folder))
  await chmod(join(stage.path, 'tmp'), 0o1777)
  for (const [path, source] of Object.entries(files)) {
    const target = join(stage.path, path)
    await mkdir(dirname(target), { recursive: true })
    if ('link' in source) await symlink(source.link, target)
    else if ('pipe' in source) await promisify(execFile)('mkfifo', [target])
    else if ('from' in source) await cp(source.from, target, { recursive: true, dereference: true })
    else await writeFile(target, source.text)
    if (!('link' in source)) await chmod(target, 0o755)
  }
  const tar = spawn('tar', ['-C', stage.path, '--owner=0', '--group=0', '-cf', '-', '.'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const repo = `sallyport-test/${name}`
  const answer = await docker.importImage(tar.stdout, { repo, tag: 'latest', changes })
  answer.resume()
  await once(answer, 'end')
  return (await docker.getImage(repo).inspect()).Id
}

/** The repo's own Node and the libraries that it loads. */
export const nodeFiles = async (): Promise<ImageSource['files']> => {
  const libraries = await librariesOf(ownNode)
  const files = Object.fromEntries(libraries.map((from) => [from, { from }]))
  return { ...files, '/usr/local/bin/node': { from: ownNode } }
}

/** An image of these files and nothing else: no shell, no libc tools, no /etc/passwd. */
export const nodeImage = async (engine: TestEngine): Promise<string> => {
  const files = await nodeFiles()
  const made = createHash('sha256').update(JSON.stringify([process.version, Object.keys(files)]))
  const name = `node-${made.digest('hex').slice(0, 12)}`
  const known = await engine.engine.image(`sallyport-test/${name}`)
  return known?.Id ?? importImage(engine, name, { files })
}

/** Paths of the shared libraries of a program, its loader included. */
const librariesOf = async (program: string): Promise<readonly string[]> => {
  const { stdout } = await promisify(execFile)('ldd', [program])
  return [...stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].flatMap(([, path]) =>
    path === undefined ? [] : [path],
  )
}
