// The examples of the docs: what they install is there to be installed, YAML is YAML, and each command has the options that it is given.
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { programFor } from '../src/cli/program.ts'
import { lintProfile } from '../src/config/profile-lint.ts'
import { decideSyscalls } from '../src/sandbox/syscalls.ts'
import { schemaOf } from '../src/schema/validate.ts'
import { root } from './support/source.ts'
import { tempDir } from './support/temp-dir.ts'

const pages = [
  'README.md',
  'profiles/README.md',
  'sandbox/README.md',
  ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`),
].filter((page) => page.endsWith('.md'))

interface Example {
  readonly page: string
  readonly language: string
  readonly text: string
}

const examples = pages.flatMap((page): Example[] =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)].map(
    ([, language = '', text = '']) => ({ page, language, text }),
  ),
)

const program = await programFor(undefined)

/** Commands as they are run: continued lines are one, prompts and comments are none, and of a session what was typed counts. An image may have the name, too. */
const commandsIn = ({ language, text }: Example): readonly string[] =>
  text
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => language !== 'console' || /^\S*[$#] /.test(line))
    .flatMap((line) => /^(?:.*\s)?sallyport ([a-z].*)$/.exec(line.replace(/ #.*$/, ''))?.[1] ?? [])

const wordsOf = (line: string): readonly string[] =>
  [...line.matchAll(/'[^']*'|"[^"]*"|\S+/g)].map(([word]) => word)

/** The first word that the program would refuse, or null. */
const misusedIn = (line: string): string | null => {
  let command: Command = program
  const words = [...wordsOf(line)]
  for (let word = words.shift(); word !== undefined && word !== '--'; word = words.shift()) {
    if (word.startsWith('-')) {
      const [flag] = word.split('=')
      const option = command.options.find(({ long, short }) => long === flag || short === flag)
      if (option === undefined) return word
      if ((option.required || option.optional) && !word.includes('=')) words.shift()
      continue
    }
    const sub = command.commands.find((one) => one.name() === word || one.aliases().includes(word))
    if (sub !== undefined) command = sub
    else if (command.commands.length > 0) return word
  }
  return null
}

const commands = examples.flatMap((example) =>
  commandsIn(example).map((line) => ({ page: example.page, line })),
)

test('there are examples on every page that has a command', () => {
  expect(commands.length).toBeGreaterThan(40)
})

test.each(commands)('$page: sallyport $line', ({ line }) => {
  expect(misusedIn(line)).toBe(null)
})

test.each(examples.filter(({ language }) => language === 'yaml'))('YAML of $page: $text', ({ text }) => {
  // An ellipsis on its own line stands for keys that are of another matter.
  expect(parseAllDocuments(text.replace(/^\s*…$/gm, '')).flatMap(({ errors }) => errors)).toEqual([])
})

const profiles = examples
  .filter(({ language, text }) => language === 'yaml' && /^version: 1\nname: /m.test(text))
  .map(({ page, text }) => ({ page, text, name: /^name: (\S+)$/m.exec(text)?.[1] ?? '' }))
  .filter(({ name, text }) => name !== '' && !text.includes('jobs:'))

test.each(profiles)('the profile $name of $page loads', async ({ name, text }) => {
  await using dir = await tempDir()
  await writeFile(join(dir.path, `${name}.yaml`), text, { mode: 0o600 })
  const search = { folders: [dir.path], owners: [process.getuid?.() ?? 0] }
  const { valid, findings } = await lintProfile(
    name,
    search,
    (policy) => void decideSyscalls(policy),
    () => null,
  )
  expect({
    valid,
    findings: findings.filter(({ message }) => !message.includes('dangerous') && !message.includes('exist')),
  }).toEqual({ valid: true, findings: [] })
})

test('a profile with every key is among them', () => {
  const keys = profiles.flatMap(({ text }) => Object.keys(parse(text) as object))
  const known = Object.keys(schemaOf('profile')['properties'] as object)
  expect(known.filter((key) => !keys.includes(key))).toEqual(['$schema', 'draft'])
})

test('nothing is installed from where Sallyport is not', () => {
  const installs = examples.flatMap(({ page, text }) =>
    [...text.matchAll(/(?:npm (?:install|i|exec)|npx)\b.*[ \t]sallyport(?:@\S+)?$/gm)].map(
      ([line]) => `${page}: ${line}`,
    ),
  )
  expect(installs).toEqual([])
})
