// Preloaded where a parser is to be fuzzed without one of its checks: takes it out of the file as that is loaded.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

/** One check of a file below src/, and what stands in its place. */
export interface Broken {
  readonly file: string
  readonly check: string
  readonly instead?: string
}

const said = process.env['SALLYPORT_FUZZ_BROKEN']
if (said !== undefined) {
  const { file, check, instead = '' } = JSON.parse(said) as Broken
  const broken = new URL(`../../src/${file}`, import.meta.url).href
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (url !== broken) return loaded
      const source = readFileSync(new URL(url), 'utf8')
      const changed = source.replace(check, () => instead)
      if (changed === source) throw new Error(`${file} has no ${check}`)
      return { ...loaded, source: changed }
    },
  })
}
