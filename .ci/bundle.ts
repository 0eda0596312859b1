// After tsc: puts the modules of the command line, and with it of the daemon and its threads, together in a few files. Node takes
// longer to find and read three hundred small files than to run them. What is loaded late stays apart, as the imports say.
import { createHash } from 'node:crypto'
import { globSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rolldown, type RolldownOutput } from 'rolldown'

const dist = fileURLToPath(new URL('../dist/', import.meta.url))

const digest = createHash('sha256')
for (const path of globSync('**/*.js', { cwd: dist, exclude: ['parts'] }).sort())
  digest.update(`${path}\0${readFileSync(`${dist}${path}`, 'utf8')}\0`)

const build = JSON.stringify(digest.digest('hex'))

/** The threads of a daemon know by it whether they are of its own build. */
const named: Plugin = {
  name: 'named',
  transform(code, id) {
    if (id !== `${dist}lib/build.js`) return null
    const written = code.replace(/'not put together'/, build)
    if (written === code) throw new Error(`.ci/bundle.ts: ${id} has no place for the name of a build`)
    return written
  },
}

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

/** What is put together shares its parts; the thread that judges arguments has little in common with the daemon, and is one file. */
const together = [['cli/main', 'config/load-child', 'journal/verify-thread'], ['schema/argument-worker']]

async function put(entries: readonly string[]): Promise<RolldownOutput['output']> {
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((name) => [name, `${dist}${name}.js`])),
    platform: 'node',
    external: /^[^./]/,
    plugins: [named, placed],
    onLog(_, { message }) {
      throw new Error(`.ci/bundle.ts: ${message}`)
    },
  })
  const { output } = await bundle.write({
    dir: dist,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'parts/[name]-[hash].js',
  })
  return output
}

const output = (await Promise.all(together.map(put))).flat()
// V8 keeps a text that has one character beyond Latin-1 with two bytes for each: a megabyte and more of a daemon's sources.
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
for (const part of output)
  if (part.type === 'chunk')
    writeFileSync(`${dist}${part.fileName}`, part.code.replaceAll(/[^\x00-\x7f]/g, escaped))
// Those of the build before have other names, and are there until these are.
const written = new Set(output.map(({ fileName }) => fileName))
for (const name of readdirSync(`${dist}parts`))
  if (!written.has(`parts/${name}`)) rmSync(`${dist}parts/${name}`)
