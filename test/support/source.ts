// The project's own sources as the tests about its shape see them: paths, text and what each file imports.
import { readFileSync, readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

/** One `import` or re-export of a source file. */
export interface Import {
  /** A package's name, `node:…`, or a path below src such as `lib/ids.ts` */
  readonly target: string
  readonly isTypeOnly: boolean
}

/** One TypeScript file below `folder`. */
export interface SourceFile {
  /** Path relative to the folder, with `/` */
  readonly path: string
  readonly text: string
  readonly imports: readonly Import[]
}

/** Reads every .ts file below `folder` of the repository; generated files are left out. */
export const sourcesOf = (folder: string): readonly SourceFile[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.gen.ts'))
    .toSorted()
    .map((path) => {
      const text = readFileSync(join(root, folder, path), 'utf8')
      return { path, text, imports: importsOf(path, text) }
    })

/** Comments are cut out first, so that what they quote does not count. */
export const withoutComments = (text: string): string =>
  text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '$1')

const importsOf = (path: string, text: string): readonly Import[] =>
  [
    ...withoutComments(text).matchAll(
      /^\s*(?:import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm,
    ),
  ].map(([, type, statically, dynamically]) => ({
    target: resolved(path, statically ?? dynamically ?? ''),
    isTypeOnly: type !== undefined,
  }))

const resolved = (from: string, specifier: string): string =>
  specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : packageOf(specifier)

const packageOf = (specifier: string): string =>
  specifier.startsWith('node:')
    ? specifier
    : specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
