// The version of this package, as its manifest says.
import { readFileSync } from 'node:fs'
import { parseJson } from './parse-json.ts'

/** Reads the version from package.json, which lies two folders above this file in the repository and in the package. */
export function packageVersion(): string {
  const manifest: unknown = parseJson(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const version: unknown =
    typeof manifest === 'object' && manifest !== null ? Reflect.get(manifest, 'version') : null
  return typeof version === 'string' ? version : 'unknown'
}
