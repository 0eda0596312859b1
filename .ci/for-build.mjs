// In an image: leaves in package.json what the build asks for, and not what only checks and tests do, which is most of
// what there would be to fetch.
import { readFileSync, writeFileSync } from 'node:fs'

const needed = [
  '@modelcontextprotocol/sdk',
  '@types/dockerode',
  '@types/node',
  'json-schema-to-typescript',
  'rolldown',
  'typescript',
]

const path = new URL('../package.json', import.meta.url)
const { devDependencies: all, ...more } = JSON.parse(readFileSync(path, 'utf8'))
const unknown = needed.filter((name) => !(name in all))
if (unknown.length > 0) throw new Error(`package.json has no ${unknown.join(', ')} among its devDependencies`)
const devDependencies = Object.fromEntries(needed.map((name) => [name, all[name]]))
writeFileSync(path, `${JSON.stringify({ ...more, devDependencies }, null, 2)}\n`)
