// After tsc: puts beside the compiled code what tsc leaves behind, and makes the CLI executable.
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Folder of JSON in the repo -> folder in dist. */
const folders = { 'src/schema': 'dist/schema', 'sandbox/seccomp': 'dist/seccomp' }

for (const [from, to] of Object.entries(folders)) {
  if (!existsSync(join(root, from))) continue
  mkdirSync(join(root, to), { recursive: true })
  for (const name of readdirSync(join(root, from)))
    if (name.endsWith('.json')) copyFileSync(join(root, from, name), join(root, to, name))
}

const cli = join(root, 'dist/cli/main.js')
if (existsSync(cli)) chmodSync(cli, 0o755)
