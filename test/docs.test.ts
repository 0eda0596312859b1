// The documents say what the code does: the same methods, codes, keys, steps and verbs, in the same words.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import packageJson from '../package.json' with { type: 'json' }
import { findings } from './chaos/seeds.ts'
import { faultRows } from './support/fault-tests.ts'
import { documents, refreshed } from '../.ci/doc-tables.ts'
import { catalogue } from '../src/errors.ts'
import { governSteps } from '../src/call/govern.ts'
import { launchSteps } from '../src/sandbox/launch.ts'
import { controls } from '../src/verify/arms/controls.ts'
import { stopSteps } from '../src/supervisor/instance/stop.ts'
import { root } from './support/source.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')
test.each(documents)('%s repeats the code’s tables as they are', async (path) => {
  expect(read(path), 'stale: run `npm run docs`').toBe(await refreshed(read(path)))
})

test.each(documents)('%s links to files and headings that exist', (path) => {
  const broken = [...read(path).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].filter(
    ([, file = '', heading]) => {
      const target = file === '' ? path : join(path, '..', file)
      if (!existsSync(join(root, target))) return true
      return heading !== undefined && !headingsOf(read(target)).includes(heading)
    },
  )
  expect(broken.map(([link]) => link)).toEqual([])
})

test.each(faultRows)('fault $number of docs/faults.md is shown by tests that are there', ({ tests }) => {
  expectThere(tests)
})

test.each(findings)(
  'what chaos found ($as, seed $seed) is held by tests that are there: $found',
  ({ tests }) => {
    expectThere(tests)
  },
)

function expectThere(tests: Readonly<Record<string, readonly string[]>>): void {
  expect(Object.keys(tests)).not.toEqual([])
  for (const [file, titles] of Object.entries(tests)) {
    const said = [...read(`test/${file}`).matchAll(/['`]([^'`\n]+)['`]/g)].map(([, text = '']) => text)
    for (const title of titles)
      expect(
        said.some((text) => text.includes(title)),
        `${file}: ${title}`,
      ).toBe(true)
  }
}

test('docs/faults.md has all of the 26', () => {
  expect(faultRows.map(({ number }) => number)).toEqual(Array.from({ length: 26 }, (_, n) => n + 1))
})

test('docs/threat-model.md shows every row by a test, and has each control that a verification takes away, and no other', () => {
  const rows = [...read('docs/threat-model.md').matchAll(/^\| (?!threat)[^|]+\|[^|]+\|([^|]+)\|[^|]+\|$/gm)]
  expect(rows.length).toBeGreaterThan(20)
  expect(rows.filter(([, shown = '']) => !shown.includes('.test.ts)')).map(([row]) => row)).toEqual([])
  const named = rows.flatMap(([, shown = '']) => [...shown.matchAll(/`([^`]+)`/g)].map(([, id = '']) => id))
  // What an engine made is asked of it for every row.
  expect(new Set([...named, 'container'])).toEqual(new Set(Object.keys(controls)))
})

test('docs/performance.md says of the run of its table what the table has', () => {
  const text = read('docs/performance.md')
  const figures = (of: string): readonly string[] => of.match(/\d+(?:[.,]\d+)*/g) ?? []
  const table = new Set(
    [...text.matchAll(/^\| .*(?:held|\*\*missed\*\*) \|$/gm)].flatMap(([row]) => figures(row)),
  )
  const said = [...text.matchAll(/In the run of the table[^]*?\.\s/g)].flatMap(([sentence]) =>
    figures(sentence),
  )
  expect(said).not.toEqual([])
  expect(said.filter((figure) => !table.has(figure))).toEqual([])
})

test('docs/architecture.md has every folder of src, and each that it names is there and has the files it says to begin with', () => {
  const rows = [...read('docs/architecture.md').matchAll(/^\| `([a-z/]+)` \| (.*) \|$/gm)]
  const folders = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => relative(join(root, 'src'), join(parentPath, name)))
  expect(rows.map(([, folder = '']) => folder).sort()).toEqual(folders.sort())
  for (const [, folder = '', said = ''] of rows)
    for (const [, file = ''] of said.matchAll(/`([a-z-]+\.ts)`/g))
      expect(existsSync(join(root, 'src', folder, file)), `${folder}/${file}`).toBe(true)
})

test('docs/control-protocol.md lists exactly the methods of the protocol', () => {
  const protocol = read('src/rpc/protocol.ts')
  const membersOf = (name: string): readonly string[] => {
    const body = new RegExp(`export interface ${name}[^{]*\\{\n([\\s\\S]*?)\n\\}`).exec(protocol)?.[1] ?? ''
    return [...body.matchAll(/^ {2}'([^']+)':/gm)].map(([, method]) => method ?? '')
  }
  const document = read('docs/control-protocol.md')
  const listedUnder = (heading: string): readonly string[] => {
    const section = new RegExp(`^## ${heading}\n([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, 'm').exec(document)?.[1]
    return [...(section ?? '').matchAll(/^### `([^`]+)`/gm)].map(([, method]) => method ?? '')
  }
  expect(listedUnder('Hosts')).toEqual(membersOf('HostMethods'))
  expect(listedUnder('Operator')).toEqual(membersOf('OperatorMethods'))
  expect(listedUnder('Notifications')).toEqual(membersOf('Notifications'))
})

test.each([
  ['A launch', launchSteps],
  ['A stop', stopSteps],
  ['A call', governSteps],
])('docs/lifecycle.md, “%s”, has the steps of the code in their order', (heading, steps) => {
  const section =
    new RegExp(`^## ${heading}\n([\\s\\S]*?)(?=^## )`, 'm').exec(read('docs/lifecycle.md'))?.[1] ?? ''
  const listed = [...section.matchAll(/^\d+\. \*\*([\w -]+)\*\*/gm)].map(([, step]) => step)
  expect(listed).toEqual(steps)
})

test('docs/lifecycle.md has every state of an instance', () => {
  const source =
    /export type InstanceState =([^\n]*\n(?: {2}\|.*\n)*)/.exec(read('src/rpc/instance-view.ts'))?.[1] ?? ''
  const states = [...source.matchAll(/'([^']+)'/g)].map(([, state]) => state ?? '')
  const listed = [...read('docs/lifecycle.md').matchAll(/^\| `([\w-]+)` \|/gm)].map(([, state]) => state)
  expect(listed).toEqual(states)
})

test('documents name only codes that exist', () => {
  const codes = documents.flatMap((path) => read(path).match(/\bERR_[A-Z_]+\b/g) ?? [])
  expect(codes.filter((code) => !(code in catalogue))).toEqual([])
})

test.each(documents)('%s names only verbs of the command line and scripts of the package', (path) => {
  const text = read(path)
  const code = [...text.matchAll(/^```(?:sh|console)?\n([\s\S]*?)^```/gm), ...text.matchAll(/`([^`\n]+)`/g)]
    .map(([, it]) => it ?? '')
    .join('\n')
  const verbs = [...code.matchAll(/(?:^|\$ )sallyport ([a-z]+)/gm)].map(([, verb]) => verb ?? '')
  const scripts = [
    ...code.matchAll(/\bnpm (?:run )?(demo|test|setup|check|bench|docs|chaos|fuzz|scale)\b/g),
  ].map(([, it]) => it ?? '')
  const known = readdirSync(join(root, 'src/cli')).map((name) => name.replace('.ts', ''))
  expect(verbs.filter((verb) => !known.includes(verb))).toEqual([])
  expect(scripts.filter((script) => !(script in packageJson.scripts))).toEqual([])
})

describe('exit statuses', () => {
  test('docs/errors.md names every exit status of the catalogue', () => {
    const document = read('docs/errors.md')
    const used = new Set([...document.matchAll(/^\| `ERR_\w+` \| (\d+) /gm)].map(([, status]) => status))
    const explained = new Set([...document.matchAll(/^\| (\d) \| /gm)].map(([, status]) => status))
    expect([...used].filter((status) => !explained.has(status))).toEqual([])
  })
})

function headingsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-'),
  )
}
