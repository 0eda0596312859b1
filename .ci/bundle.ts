// After tsc: puts the modules of the command line, and with it of the daemon, together in a few files. Node takes longer to
// find and read three hundred small files than to run them. What is loaded late stays apart, as the imports say.
import { rmSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'

const dist = fileURLToPath(new URL('../dist/', import.meta.url))

/** A module finds what lies beside it from where it was, which is one folder below dist, as is where it is now. */
const placed: Plugin = {
  name: 'placed',
  transform(code, id) {
    if (!code.includes('import.meta.url')) return null
    const was = JSON.stringify(`../${relative(dist, id)}`)
    return code.replaceAll('import.meta.url', `new URL(${was}, import.meta.url).href`)
  },
}

const bundle = await rolldown({
  input: { main: `${dist}cli/main.js` },
  platform: 'node',
  external: /^[^./]/,
  plugins: [placed],
  onLog(_, { message }) {
    throw new Error(`.ci/bundle.ts: ${message}`)
  },
})
rmSync(`${dist}parts`, { recursive: true, force: true }) // those of the build before have other names
await bundle.write({
  dir: dist,
  format: 'esm',
  entryFileNames: 'cli/main.js',
  chunkFileNames: 'parts/[name]-[hash].js',
})
