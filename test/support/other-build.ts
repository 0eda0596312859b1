// The built package with something of it otherwise: a control that is not there, or one that takes its time.
import { copyFileSync, cpSync, linkSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempDir } from './temp-dir.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Puts the package as it is built into a folder, without its types. What tools keep in `dist`, by names with a dot, is no part of it, and
 * comes and goes. Its programs are copies; its modules are the same files by another name, to be replaced and never to be written to.
 */
export const copyPackage = async (folder: string): Promise<void> => {
  const copied = ['profiles', 'package.json', 'sandbox/seccomp', 'dist/libexec']
  for (const part of copied) cpSync(join(repository, part), join(folder, part), { recursive: true })
  for (const entry of readdirSync(join(repository, 'dist'), { withFileTypes: true }))
    if (!entry.name.startsWith('.') && entry.name !== 'libexec')
      link(join(repository, 'dist', entry.name), join(folder, 'dist', entry.name), entry.isDirectory())
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
}

/** A copy of all modules takes a second of the processor. */
const link = (from: string, to: string, isFolder: boolean): void => {
  if (!isFolder) return linkOrCopy(from, to)
  mkdirSync(to, { recursive: true })
  for (const entry of readdirSync(from, { withFileTypes: true }))
    if (!entry.name.endsWith('.d.ts')) link(join(from, entry.name), join(to, entry.name), entry.isDirectory())
}

const linkOrCopy = (from: string, to: string): void => {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to) // such as to another file system
  }
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
    rmSync(at('dist', module))
    await writeFile(at('dist', module), text.replace(from, to))
  }
  return {
    path: folder.path,
    load: (module) => loadFrom(folder.path, module),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}
