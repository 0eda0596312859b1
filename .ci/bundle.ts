// After tsc: puts the modules of the command line, and with it of the daemon, together in a few files. Node takes longer to
// find and read three hundred small files than to run them. What is loaded late stays apart, as the imports say.
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'

const dist = fileURLToPath(new URL('../dist/', import.meta.url))

/** A module finds what lies beside it from where it was; all that is written is one folder below dist, in cli or in parts. */
const placed: Plugin = {
  name: 'placed',
  transform(code, id) {
    if (/import\.meta\b(?!\.url\b)/.test(code))
      throw new Error(`.ci/bundle.ts: ${id} asks import.meta for more than its url, which is another's here`)
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
const { output } = await bundle.write({
  dir: dist,
  format: 'esm',
  entryFileNames: 'cli/main.js',
  chunkFileNames: 'parts/[name]-[hash].js',
})
// V8 keeps a text that has one character beyond Latin-1 with two bytes for each: a megabyte and more of a daemon's sources.
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
for (const part of output)
  if (part.type === 'chunk')
    writeFileSync(`${dist}${part.fileName}`, part.code.replaceAll(/[^\x00-\x7f]/g, escaped))
// Those of the build before have other names, and are there until these are.
const written = new Set(output.map(({ fileName }) => fileName))
for (const name of readdirSync(`${dist}parts`))
  if (!written.has(`parts/${name}`)) rmSync(`${dist}parts/${name}`)
