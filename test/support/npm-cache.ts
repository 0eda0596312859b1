// What an image's build asks of package-lock.json, as npm keeps it for itself: enough for an `npm ci` there that reaches nobody.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { isMissing } from '../../src/lib/missing.ts'
import { root } from './source.ts'
import { tempDir } from './temp-dir.ts'

const run = promisify(execFile)

type Wanted = Readonly<Record<string, string>>

interface Manifest {
  readonly dependencies?: Wanted
  readonly devDependencies?: Wanted
  readonly optionalDependencies?: Wanted
  readonly peerDependencies?: Wanted
}

interface Locked extends Manifest {
  readonly version: string
  readonly integrity?: string
  readonly optional?: boolean
}

type Lock = Readonly<Record<string, Locked>>

/** Fills `cache` with what this machine's npm has of what the build needs; npm fetches all of the lock where something is missing. */
export const copyNpmCache = async (cache: string): Promise<void> => {
  const [kept = '', registry = ''] = await Promise.all(['cache', 'registry'].map(setting))
  const text = await readFile(join(root, 'package-lock.json'), 'utf8')
  const { packages } = JSON.parse(text) as { readonly packages: Lock }
  const copyAnswer = async (address: string): Promise<void> => {
    const entry = placeOfEntry(`make-fetch-happen:request-cache:${registry}${address}`)
    const about = (await readFile(join(kept, entry), 'utf8')).match(/(?<="integrity":")[^"]+/g)
    for (const place of [entry, placeOfContent(about?.at(-1) ?? '')]) {
      await mkdir(dirname(join(cache, place)), { recursive: true })
      await cp(join(kept, place), join(cache, place))
    }
  }
  for (const [path, locked] of reached(packages, await forBuild()))
    try {
      const name = path.split('node_modules/').at(-1) ?? ''
      await copyAnswer(name.replace('/', '%2f'))
      await copyAnswer(`${name}/-/${basename(name)}-${locked.version}.tgz`)
    } catch (error) {
      if (!isMissing(error)) throw error
      // What is for other machines is optional, and on none of the others.
      if (!locked.optional) return fetchInto(cache)
    }
}

/** What the build in an image leaves of package.json. */
const forBuild = async (): Promise<Manifest> => {
  await using folder = await tempDir()
  for (const name of ['package.json', '.ci/for-build.mjs'])
    await cp(join(root, name), join(folder.path, name))
  await run(process.execPath, [join(folder.path, '.ci/for-build.mjs')])
  return JSON.parse(await readFile(join(folder.path, 'package.json'), 'utf8')) as Manifest
}

/** The packages of the lock that these ask for, and those ask for in turn. */
const reached = (packages: Lock, manifest: Manifest): ReadonlyMap<string, Locked> => {
  const found = new Map<string, Locked>()
  const follow = (from: string, asking: Manifest): void => {
    const { dependencies, devDependencies, optionalDependencies, peerDependencies } = asking
    const asked = { ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies }
    for (const name of Object.keys(asked)) {
      const path = foldersAbove(from)
        .map((folder) => `${folder}node_modules/${name}`)
        .find((place) => place in packages)
      const locked = path === undefined ? undefined : packages[path]
      if (path === undefined || locked === undefined || found.has(path)) continue
      found.set(path, locked)
      follow(`${path}/`, locked)
    }
  }
  follow('', manifest)
  return found
}

/** `node_modules/a/node_modules/b/` is in that folder, in `node_modules/a/`, and in the root, whose name is empty. */
const foldersAbove = (folder: string): readonly string[] =>
  folder === '' ? [''] : [folder, ...foldersAbove(folder.slice(0, folder.lastIndexOf('node_modules/')))]

const setting = async (name: string): Promise<string> =>
  (await run('npm', ['config', 'get', name], { cwd: root })).stdout.trim()

const placeOfContent = (integrity: string): string => {
  const [algorithm = '', digest = ''] = integrity.split('-')
  return placeOf(`content-v2/${algorithm}`, Buffer.from(digest, 'base64').toString('hex'))
}

const placeOfEntry = (key: string): string =>
  placeOf('index-v5', createHash('sha256').update(key).digest('hex'))

const placeOf = (kind: string, hex: string): string =>
  `_cacache/${kind}/${hex.slice(0, 2)}/${hex.slice(2, 4)}/${hex.slice(4)}`

const fetchInto = async (cache: string): Promise<void> => {
  await using folder = await tempDir()
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    await cp(join(root, name), join(folder.path, name))
  await run('npm', ['ci', '--ignore-scripts', `--cache=${cache}`], { cwd: folder.path })
}
