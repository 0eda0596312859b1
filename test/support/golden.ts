// Golden files: an input, a line of dashes, and what comes of it, all in one file that a person can read.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../golden/', import.meta.url))
const divider = '----------\n'

/** Absolute path of a golden file. */
export const goldenPath = (folder: string, name: string): string => `${root}${folder}/${name}.golden`

/** Names of the golden files of a folder. */
export const goldenNames = (folder: string): readonly string[] =>
  readdirSync(`${root}${folder}`)
    .filter((file) => file.endsWith('.golden'))
    .map((file) => file.slice(0, -'.golden'.length))
    .sort()

/** The input of a golden file: everything above the dashes. */
export function goldenInput(folder: string, name: string): string {
  const text = readFileSync(goldenPath(folder, name), 'utf8')
  return text.slice(0, text.lastIndexOf(divider))
}

/** The whole file as it should be; compare it with `toMatchFileSnapshot`. */
export const golden = (input: string, output: string): string => `${input}${divider}${output}\n`
