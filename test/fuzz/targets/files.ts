// Configurations and profiles of any bytes: a value as JSON has it where they are JSON, and one named refusal where they are wrong.
import { deepStrictEqual, equal, match, ok } from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { Lexer } from 'yaml'
import { checkSources } from '../../../src/config/injection.ts'
import { type Document, parseDocument } from '../../../src/config/document.ts'
import { makeLayer } from '../../../src/config/layer.ts'
import { checkLayers, foldLayers } from '../../../src/config/profile.ts'
import { refuse } from '../../../src/config/refusal.ts'
import { overlay } from '../../../src/config/scopes.ts'
import { SallyportError } from '../../../src/errors.ts'
import { type Member, members } from '../../../src/lib/json-scan.ts'
import type { Step } from '../../../src/schema/problem.ts'
import { validate } from '../../../src/schema/validate.ts'
import type { Target } from '../target.ts'

const yaml = [
  '&a ',
  '*a',
  '<<: ',
  '!!binary ',
  '%YAML 1.1\n',
  '---\n',
  '...\n',
  '? ',
  ': ',
  '- ',
  '|+2\n',
  '>-\n',
  '"\\x41"',

  '{a: ',
  '[',
  ']',
  '}',
  '# c',
  '~',
  '0x1',
  '0o7',
  '.inf',
  '.nan',
  '2001-01-01',
  '\u2028',
  '\ufeff',
  '\t',
  '\n  ',
  '__proto__: ',
  'constructor: ',
  '"\\ud800"',
  '!<tag:x> ',
  "''",
]
const keys = [
  'version: 1\n',
  'servers:\n  s:\n    command: node\n',
  '    args: [a]\n',
  '    env: {A: b}\n',
  '    profile: x\n',

  '    mounts: [{source: /a, target: /b, access: write, reason: r}]\n',
  'rules:\n  - {permission: "mcp:*:*", action: deny}\n',

  'credentials: {x: {env: X}, y: {command: [/a/b]}}\n',
  'allowed_commands: [node, {name: x, path: /x}]\n',
  'exclusive: true\n',
  'mode: default\n',
  '${A}',
  '${A:-b}',
]
const profileKeys = [
  'version: 1\nname: f\n',
  'description: d\n',
  'extends: offline\n',
  'widens: true\n',
  'network:\n  mode: allowlist\n  allow:\n    - {host: a.test, port: 443, reason: r}\n',
  '    - {host: "*.a.test", port: 1, reason: r}\n',
  'syscalls: {allow: [keyctl]}\n',

  'environment: {pass: [TZ], set: {A: x}}\n',
  'limits: {memory_bytes: 67108864, pids: 8}\n',
  'filesystem: {read: [{path: /usr, reason: r}]}\n',
]

/** Runs `act`; whatever it throws has to be one refusal in one line that says where. */
function refusable(act: () => void): void {
  try {
    act()
  } catch (error) {
    ok(error instanceof SallyportError, error instanceof Error ? error : String(error))
    ok(error.code !== 'ERR_INTERNAL', error)
    match(error.message, /^\/f\.yaml(:\d+:\d+)?: [^\n]+$/)
  }
}

/** The text, or undefined where the file would have been refused before. */
const textOf = (bytes: Buffer): string | undefined => (isUtf8(bytes) ? bytes.toString() : undefined)

const json = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What another reader than the parser, the library's lexer, finds in a text that no file may have. */
function expectPlain(text: string): void {
  ok(!/[\0-\x08\v\f\x0e-\x1f\x7f]|\r(?!\n)/.test(text), 'a control character is read')
  const scalar = '\x1f' // which stands before each that is not quoted
  let before = ''
  let hasContent = false
  const tokens = [...new Lexer().lex(text)].filter((token) => token.trim() !== '')
  for (const [n, token] of tokens.entries()) {
    if (before !== scalar) {
      // At the end of a mapping in braces it is of nothing, and the library drops it.
      ok(!token.startsWith('!') || tokens[n + 1] === '}', 'a tag is read')
      ok(!/^%YAML\s+(?!1\.2)/.test(token), 'a directive of another version is read')
      ok(token !== '---' || !hasContent, 'a second document is left out')
    }
    hasContent ||= token === scalar || token.startsWith('"')
    before = token
  }
}

/** Every key and text of a JSON value stands where it is said to stand. */
function expectPlaces(text: string, value: unknown, parsed: Document): void {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const textAt = (at: readonly Step[], part: 'key' | 'value'): string => {
    const { line, column } = parsed.locate(at, part) ?? { line: 0, column: 0 }
    const [found = 'null'] = /^"(?:[^"\\]|\\.)*"/.exec(text.slice((starts[line - 1] ?? 0) + column - 1)) ?? []
    return JSON.parse(found) as string
  }
  const look = (node: unknown, at: readonly Step[]): void => {
    if (typeof node === 'string') equal(textAt(at, 'value'), node)
    if (typeof node !== 'object' || node === null) return
    for (const [key, inner] of Object.entries(node)) {
      if (!Array.isArray(node)) equal(textAt([...at, key], 'key'), key)
      look(inner, [...at, Array.isArray(node) ? Number(key) : key])
    }
  }
  look(value, [])
}

/** Throws where an object has a key twice. */
const expectOnce = (line: string): readonly Member[] => members(line, 0, line.length, { unique: true })

/** Whether a mapping merges another one into itself. */
const merges = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (Object.hasOwn(value, '<<') || Object.values(value).some(merges))

/** YAML and JSON alike. */
export const document: Target = {
  name: 'document',
  seeds: [
    'a: 1\nb: [x, "y"]\nc: &x {d: e}\nd: *x\n',
    '{"a":[1,2.5,null,true,"\\u00e9"],"b":{"c":{}}}',
    '{"a":{"b":1,"b":2}}',
    '{\n  "a": [\n    "b",\n    {"c": "d"}\n  ]\n}\n',
    'a: !!str 1\n',
    'a:\n  <<: {b: 1}\n',
    '%YAML 1.1\n---\na: 1\n',
    'a: 1\n---\nb: 2\n',
    'a: "b\x07"\n',
    'a: b\rc: d\n',
  ],
  words: yaml,
  run(bytes) {
    const text = textOf(bytes)
    if (text === undefined) return
    refusable(() => {
      const parsed = parseDocument('/f.yaml', text)
      const place = parsed.locate(['a', 0, 'b'], 'value')
      ok(place !== null && place.line >= 1 && place.column >= 1)
      expectPlain(text)
      ok(!merges(parsed.value), 'a merge key is read')
      const value = json(text)
      if (value === undefined) return
      deepStrictEqual(JSON.stringify(parsed.value), JSON.stringify(value))
      expectPlaces(text, value, parsed)
      if (/^\s*\{/.test(text)) expectOnce(bytes.toString('latin1').replaceAll(/[\r\n]/g, ' '))
    })
  },
}

/** One configuration file, by itself. */
export const config: Target = {
  name: 'config',
  seeds: [
    keys.slice(0, 4).join(''),
    [...keys.slice(0, 3), ...keys.slice(5, 9)].join(''),
    '{"version":1,"servers":{"s":{"command":"node","args":["a"]}}}',
  ],
  words: [...yaml, ...keys],
  run(bytes) {
    const text = textOf(bytes)
    if (text === undefined) return
    refusable(() => {
      const layer = makeLayer('file', parseDocument('/f.yaml', text))
      overlay([layer])
      refuse(checkSources(layer))
    })
  },
}

/** One profile, by itself. */
export const profile: Target = {
  name: 'profile',
  seeds: [
    profileKeys.slice(0, 2).join(''),
    [...profileKeys.slice(0, 2), ...profileKeys.slice(4)].join(''),
    `${profileKeys[0]}network: {allow: [{host: a.xn--a, port: 1, reason: r}]}\n`,
  ],
  words: [...yaml, ...profileKeys],
  run(bytes) {
    const text = textOf(bytes)
    if (text === undefined) return
    refusable(() => {
      const parsed = parseDocument('/f.yaml', text)
      const validated = validate('profile', parsed.value)
      if (!validated.ok) {
        ok(validated.problems.length > 0, 'refused without a reason')
        return refuse(
          validated.problems.map((problem) => ({ code: 'ERR_PROFILE_INVALID', document: parsed, problem })),
        )
      }
      const layers = [{ name: 'f', document: parsed, profile: validated.value }]
      refuse(checkLayers(layers))
      foldLayers(layers)
    })
  },
}
