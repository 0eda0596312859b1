// After tsc: puts the schemas beside the compiled code, and makes the CLI executable.
import { chmodSync, copyFileSync, mkdirSync, readdirSync } from 'node:fs'

const root = new URL('../', import.meta.url)

mkdirSync(new URL('dist/schema/', root), { recursive: true })
for (const name of readdirSync(new URL('src/schema/', root)))
  if (name.endsWith('.json'))
    copyFileSync(new URL(`src/schema/${name}`, root), new URL(`dist/schema/${name}`, root))

chmodSync(new URL('dist/cli/main.js', root), 0o755)
