// Configurations and profiles of any bytes: a value as JSON has it where they are JSON, and one named refusal where they are wrong.
import { deepStrictEqual, match, ok } from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { checkSources } from '../../../src/config/injection.ts'
import { parseDocument } from '../../../src/config/document.ts'
import { makeLayer } from '../../../src/config/layer.ts'
import { checkLayers, foldLayers } from '../../../src/config/profile.ts'
import { refuse } from '../../../src/config/refusal.ts'
import { overlay } from '../../../src/config/scopes.ts'
import { SallyportError } from '../../../src/errors.ts'
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

  '    mounts: [{source: /a, target: /b, access: write}]\n',
  'rules:\n  - {tool: "*", action: deny, reason: r}\n',

  'credentials: {x: {env: X}}\n',
  'allowed_commands: [node]\n',
  'exclusive: true\n',
  'mode: observe\n',
  '${A}',
  '${A:-b}',
]
const profileKeys = [
  'name: f\n',
  'description: d\n',
  'extends: offline\n',
  'widens: true\n',
  'network:\n  mode: allowlist\n  allow:\n',

  '    - {host: a.test, port: 443, reason: r}\n',
  '    - {host: "*.a.test", ports: [1], reason: r}\n',
  'syscalls: {allow: [{name: x, reason: r}]}\n',

  'environment: {pass: [PATH], set: {LD_PRELOAD: x}}\n',
  'limits: {memory_bytes: 1, pids: 2}\n',
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

/** YAML and JSON alike. */
export const document: Target = {
  name: 'document',
  seeds: ['a: 1\nb: [x, "y"]\nc: &x {d: e}\nd: *x\n', '{"a":[1,2.5,null,true,"\\u00e9"],"b":{"c":{}}}'],
  words: yaml,
  run(bytes) {
    const text = textOf(bytes)
    if (text === undefined) return
    refusable(() => {
      const parsed = parseDocument('/f.yaml', text)
      const place = parsed.locate(['a', 0, 'b'], 'value')
      ok(place !== null && place.line >= 1 && place.column >= 1)
      const value = json(text)
      if (value !== undefined) deepStrictEqual(JSON.stringify(parsed.value), JSON.stringify(value))
    })
  },
}

/** One configuration file, by itself. */
export const config: Target = {
  name: 'config',
  seeds: [keys.slice(0, 4).join(''), '{"version":1,"servers":{"s":{"command":"node","args":["a"]}}}'],
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
    `${profileKeys[0]}${profileKeys[1]}${profileKeys[4]}${profileKeys[5]}`,
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
