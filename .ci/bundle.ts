// After tsc: puts the modules of the command line, and with it of the daemon and its threads, together in a few files. Node takes
// longer to find and read three hundred small files than to run them. What is loaded late stays apart, as the imports say, and so
// do other packages but for a few, whose licences are put beside.
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
    if (!id.startsWith(dist)) return null
    if (/import\.meta\b(?!\.url\b)/.test(code))
      throw new Error(`.ci/bundle.ts: ${id} asks import.meta for more than its url, which is another's here`)
    if (!code.includes('import.meta.url')) return null
    const was = JSON.stringify(`../${relative(dist, id)}`)
    return code.replaceAll('import.meta.url', `new URL(${was}, import.meta.url).href`)
  },
}

/** What is put together shares its parts; the thread that judges arguments has little in common with the daemon, and is one file. */
const together = [['cli/main', 'config/load-child', 'journal/verify-thread'], ['schema/argument-worker']]

/** Packages that most commands or every daemon load: as many files of theirs take longer to find than to run. */
const taken: readonly string[] = ['commander', 'nanoid', 'pino', 'yaml']

/** What one of them asks for is taken with it. */
const isApart = (id: string, importer?: string): boolean =>
  /^[^./]/.test(id) && !taken.includes(id) && importer?.startsWith(dist) === true

async function put(entries: readonly string[]): Promise<RolldownOutput['output']> {
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((name) => [name, `${dist}${name}.js`])),
    platform: 'node',
    external: isApart,
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

/** The package, by its folder, that a module is of; null for one of ours. */
const packageOf = (id: string): string | null =>
  id.startsWith(dist) ? null : (/^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? null)

/** What the licences of these packages ask to be kept with what is made of them. */
function licencesOf(folders: ReadonlySet<string>): string {
  const texts = [...folders].sort().map((folder) => {
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
    if (file === undefined) throw new Error(`.ci/bundle.ts: ${folder} has no licence to put beside its code`)
    const name = folder.slice(folder.lastIndexOf('/node_modules/') + '/node_modules/'.length)
    return `${name}\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}\n`
  })
  return texts.join(`\n${'-'.repeat(80)}\n\n`)
}

const output = (await Promise.all(together.map(put))).flat()
// V8 keeps a text that has one character beyond Latin-1 with two bytes for each: a megabyte and more of a daemon's sources.
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
for (const part of output)
  if (part.type === 'chunk')
    writeFileSync(`${dist}${part.fileName}`, part.code.replaceAll(/[^\x00-\x7f]/g, escaped))
// Those of the build before have other names, and are there until these are.
const written = new Set(output.map(({ fileName }) => fileName)).add('parts/LICENSES.txt')
const modules = output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []))
const others = new Set(modules.map(packageOf).filter((folder) => folder !== null))
writeFileSync(`${dist}parts/LICENSES.txt`, licencesOf(others))
for (const name of readdirSync(`${dist}parts`))
  if (!written.has(`parts/${name}`)) rmSync(`${dist}parts/${name}`)
