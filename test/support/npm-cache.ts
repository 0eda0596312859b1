// What package-lock.json names, as npm keeps it for itself: enough for an `npm ci` that reaches nobody.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { isMissing } from '../../src/lib/missing.ts'
import { root } from './source.ts'
import { tempDir } from './temp-dir.ts'

const run = promisify(execFile)

interface Locked {
  readonly version: string
  readonly integrity?: string
  readonly optional?: boolean
}

/** Fills `cache` with what this machine's npm has of the lock; npm fetches all of it where something is missing. */
export const copyNpmCache = async (cache: string): Promise<void> => {
  const [kept = '', registry = ''] = await Promise.all(['cache', 'registry'].map(setting))
  const text = await readFile(join(root, 'package-lock.json'), 'utf8')
  const { packages } = JSON.parse(text) as { readonly packages: Readonly<Record<string, Locked>> }
  const copyAnswer = async (address: string): Promise<void> => {
    const entry = placeOfEntry(`make-fetch-happen:request-cache:${registry}${address}`)
    const about = (await readFile(join(kept, entry), 'utf8')).match(/(?<="integrity":")[^"]+/g)
    for (const place of [entry, placeOfContent(about?.at(-1) ?? '')]) {
      await mkdir(dirname(join(cache, place)), { recursive: true })
      await cp(join(kept, place), join(cache, place))
    }
  }
  for (const [path, locked] of Object.entries(packages).filter(([, it]) => it.integrity !== undefined))
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
