// The built package with something of it otherwise: a control that is not there, or one that takes its time.
import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempDir } from './temp-dir.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))

/** Copies the package as it is built into a folder, without its types. What tools keep in `dist`, by names with a dot, is no part of it, and comes and goes. */
export const copyPackage = async (folder: string): Promise<void> => {
  for (const part of ['dist', 'profiles', 'package.json', 'sandbox/seccomp'])
    await cp(join(repository, part), join(folder, part), {
      recursive: true,
      filter: (file) => !file.startsWith(`${join(repository, 'dist')}/.`) && !file.endsWith('.d.ts'),
    })
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
}

const require = createRequire(import.meta.url)

/** Loads a module of such a copy as Node does: the test runner would compile hundreds of them, which takes seconds, and keep them. */
export const loadFrom = (copy: string, module: string): unknown => require(join(copy, 'dist', module))

/** What stands in a module below dist, and what in its place. */
export type Change = readonly [module: string, from: string, to: string]

export interface OtherBuild extends AsyncDisposable {
  readonly path: string
  /** Loads a module below dist */
  load(module: string): unknown
}

/** Makes it. Throws where a module has nothing of the kind, so that no test passes by missing what it changes. */
export const otherBuild = async (...changes: readonly Change[]): Promise<OtherBuild> => {
  const folder = await tempDir()
  const at = (...names: readonly string[]): string => join(folder.path, ...names)
  await copyPackage(folder.path)
  for (const [module, from, to] of changes) {
    const text = await readFile(at('dist', module), 'utf8')
    if (!text.includes(from)) throw new Error(`${module} has no ${from}`)
    await writeFile(at('dist', module), text.replace(from, to))
  }
  return {
    path: folder.path,
    load: (module) => loadFrom(folder.path, module),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}
