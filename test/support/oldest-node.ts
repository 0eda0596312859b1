// The oldest Node that package.json promises to run on, as the npm registry has it.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from './source.ts'
import { tempDir } from './temp-dir.ts'

export interface OldestNode extends AsyncDisposable {
  readonly path: string
  readonly version: string
}

/** Fetches it into a folder that goes with it. Rejects where npm or its registry can't be had. */
export async function oldestNode(): Promise<OldestNode> {
  const version = `${await promised()}.0`
  const folder = await tempDir()
  try {
    const name = `node-linux-${process.arch}`
    const quiet = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder.path]
    await promisify(execFile)('npm', ['install', ...quiet, `${name}@${version}`])
    const path = join(folder.path, 'node_modules', name, 'bin', 'node')
    return { path, version, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
  } catch (error) {
    await folder[Symbol.asyncDispose]()
    throw error
  }
}

/** Major and minor number. */
async function promised(): Promise<string> {
  const { engines } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    readonly engines: { readonly node: string }
  }
  const [, version] = /^>=(\d+\.\d+)$/.exec(engines.node) ?? []
  if (version === undefined) throw new Error(`engines.node is ${engines.node}, expected >=MAJOR.MINOR`)
  return version
}
