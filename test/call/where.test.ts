// Arguments are a host's, and a project's rules are: what rules look at in them is looked at in a short turn, or can't be told.
import { expect, test } from 'vitest'
import { gateOf } from '../../src/call/gate.ts'
import type { Decision, GovernedRequest } from '../../src/schema/gate.ts'
import type { Action, Rule } from '../../src/schema/settings.ts'
import { processorMs } from '../support/processor-time.ts'

const rule = (action: Action, where: Rule['where'], origin = 'rules[0]'): Rule => ({
  permission: 'mcp:*:*',
  action,
  where,
  origin,
})
const server: GovernedRequest['server'] = {
  name: 'files',
  file: 'sallyport.yaml',
  scope: 'user',
  trust: 'trusted',
  tools: { allow: [], deny: [], readOnly: [] },
}
const decided = (rules: readonly Rule[], args: unknown): Decision =>
  gateOf(rules).decide({ server, kind: 'tool', subject: 'read', arguments: args })

test.each(['/path', '/*'])(
  'the keys of the arguments are listed once, however many rules look there: %s',
  (pointer) => {
    let count = 0
    const args = new Proxy(
      { path: '/a', other: 1 },
      {
        ownKeys(target) {
          count += 1
          return Reflect.ownKeys(target)
        },
      },
    )
    const rules = Array.from({ length: 50 }, (_, n) =>
      rule('deny', { [`/p${n}`]: '/etc/**', [pointer]: '/etc/**', '/other': 'never' }),
    )
    decided([...rules, rule('allow', {})], args)
    expect(count).toBe(1)
  },
)

test.each([
  ['the fold of the pointer’s key', '/Path', ['path']],
  ['another key of that fold', '/path', ['other', 'Path', 'PATH']],
  ['a key of that fold beside the pointer’s own', '/path', ['path', 'ｐath']],
  ['a key of that fold where the pointer’s own is none', '/Path', ['Path', 'PATH']],
  ['a NUL in any key', '/path', ['path', 'x\0']],
  ['a prototype for readers that copy objects', '/path', ['path', '__proto__']],
  ['one with much that is not shown', '/path', ['path', `path${'\u200b'.repeat(400)}`]],
  [
    'one of a long pointer, in full width',
    `/${'path'.repeat(90)}`,
    ['path'.repeat(90), `\uff50ath${'path'.repeat(89)}`],
  ],
])('a rule does not look where there is %s', (_what, pointer, keys) => {
  const args = Object.fromEntries(keys.map((key) => [key, '/docs/a']))
  expect(decided([rule('allow', { [pointer]: '/docs/**' })], args).code).toBe('ERR_MESSAGE_AMBIGUOUS')
})

const dear = { glob: `*${'a'.repeat(4000)}b`, value: 'a'.repeat(20_000) }
test('what takes too many steps to compare is denied by a deny, asked by an ask and allowed by nothing', () => {
  const where = { '/text': dear.glob }
  const args = { text: dear.value }
  expect(decided([rule('deny', where), rule('allow', {})], args).action).toBe('deny')
  expect(decided([rule('ask', where), rule('allow', {})], args).action).toBe('ask')
  expect(decided([rule('allow', where)], args).action).toBe('ask')
})

test('the steps are those of all rules together', () => {
  const rules = Array.from({ length: 100 }, (_, n) => rule('deny', { '/path': `/**/${n}/x` }, `rules[${n}]`))
  const args = { path: `/${'a/'.repeat(20_000)}` }
  expect(decided([...rules.slice(0, 1), rule('allow', {})], args).action).toBe('allow')
  expect(decided([...rules, rule('allow', {})], args).action).toBe('deny')
})

test.each([
  ['a text of a megabyte', { text: 'a'.repeat(1_000_000) }, '**'],
  ['a long text with other letters', { text: `é${'a'.repeat(6000)}` }, '*a'],
  ['a long text of lines', { text: `${'const x = 1'.repeat(6)}\n`.repeat(900) }, '**'],
  ['a long address', { text: `https://example.org/${'a/'.repeat(4000)}` }, 'https://example.org/**'],
])('%s is compared', (_what, args, glob) => {
  expect(decided([rule('allow', { '/text': glob })], args).action).toBe('allow')
})

test('a text of lines is looked at in other readings once, however many rules compare it', () => {
  const rules = Array.from({ length: 10 }, (_, n) => rule('deny', { '/text': `*${n}secret*` }, `rules[${n}]`))
  const args = { text: 'select é from a where b = 1\n'.repeat(1000) }
  expect(decided([...rules, rule('allow', {})], args).action).toBe('allow')
})

test.each([
  ['a text', '/**/x/*', `/${'a/'.repeat(4_000_000)}`],
  ['an address', 'file:///**', `file:///${'a/'.repeat(4_000_000)}`],
])('%s of many megabytes is not', (_what, glob, text) => {
  expect(decided([rule('deny', { '/text': glob }), rule('allow', {})], { text }).action).toBe('deny')
})

test('of a list that is long beside the rules the rest is shown, and denied when it is asked for', () => {
  const rules = Array.from({ length: 20 }, (_, n) => rule('deny', { '/uri': `file:///**/${n}/secret` }))
  const gate = gateOf([...rules, rule('deny', { '/uri': 'file:///secret/**' }), rule('allow', {})])
  const isHidden = gate.hides(server, 'resources/read')
  const uri = 'file:///secret/a'
  expect(isHidden?.({ uri })).toBe(true)
  const first = Array.from({ length: 2000 }, () => isHidden?.({ uri })).indexOf(false)
  expect(first).toBeGreaterThan(500)
  expect(isHidden?.({ uri })).toBe(false)
  const request = { server, kind: 'method', subject: 'resources/read', arguments: { uri } } as const
  expect(gate.decide(request).action).toBe('deny')
  // Another list begins anew.
  expect(gate.hides(server, 'resources/read')?.({ uri })).toBe(true)
})

test('what is denied whatever it is stays hidden in a list of any length', () => {
  const isHidden = gateOf([rule('deny', { '/uri': 'file:///**/x' }), rule('deny', {})]).hides(
    server,
    'resources/read',
  )
  const long = `file:///${'a/'.repeat(1_000_000)}`
  for (let n = 0; n < 10; n += 1) expect(isHidden?.({ uri: long })).toBe(true)
})

const listed = (paths: unknown, pointer = '/paths/*', glob = '/docs/**') => {
  const looks = (action: Action) => decided([rule(action, { [pointer]: glob })], { paths }).action
  const isDenied = decided([rule('deny', { [pointer]: glob }, 'it'), rule('allow', {})], { paths })
  return { allow: looks('allow') === 'allow', deny: isDenied.action === 'deny' && isDenied.rule === 'it' }
}

test.each([
  ['every element', ['/docs/a', '/docs/b'], { allow: true, deny: true }],
  ['one of its elements', ['/docs/a', '/etc/shadow'], { allow: false, deny: true }],
  ['its last element', ['/etc/a', '/etc/b', '/docs/c'], { allow: false, deny: true }],
  ['no element', ['/etc/a', '/etc/b'], { allow: false, deny: false }],
  ['every element, of which one can’t be told', ['/docs/a', '/docs/%2e%2e/b'], { allow: false, deny: true }],
  ['no element, of which one is no string', ['/etc/a', 7], { allow: false, deny: true }],
  ['nothing, being empty', [], { allow: false, deny: true }],
  ['all, being a string', '/docs/a', { allow: false, deny: true }],
  ['an element of a list in it', [['/docs/a']], { allow: false, deny: true }],
  ['the key * of an object', { '*': '/docs/a' }, { allow: true, deny: true }],
  ['another than the key * of an object', { '*': '/etc/a' }, { allow: false, deny: false }],
  ['a key * that has others beside it', { '*': '/docs/a', 0: '/etc/a' }, { allow: false, deny: true }],
])('a pointer’s * over a list is every element: a glob that matches %s', (_what, paths, expected) => {
  expect(listed(paths)).toEqual(expected)
})

test('a pointer goes on behind its *, as often as it has one', () => {
  const edits = (...paths: unknown[]) => paths.map((path) => ({ path }))
  const every = '/paths/*/path'
  expect(listed(edits('/docs/a', '/docs/b'), every)).toEqual({ allow: true, deny: true })
  expect(listed(edits('/docs/a', '/etc/b'), every)).toEqual({ allow: false, deny: true })
  expect(listed(edits('/etc/a', '/etc/b'), every)).toEqual({ allow: false, deny: false })
  expect(listed([['/docs/a'], ['/docs/b', '/etc/c']], '/paths/*/*')).toEqual({ allow: false, deny: true })
  expect(listed([['/docs/a'], ['/docs/b']], '/paths/*/*')).toEqual({ allow: true, deny: true })
})

test('no element has a key that readers take for another where a pointer goes on behind its *', () => {
  const paths = [{ path: '/docs/a' }, { path: '/docs/a', PATH: '/etc/b' }]
  expect(decided([rule('allow', { '/paths/*/path': '/docs/**' })], { paths }).code).toBe(
    'ERR_MESSAGE_AMBIGUOUS',
  )
})

test('long lists are looked at in a short turn, or can’t be told', () => {
  const paths = Array.from({ length: 240_000 }, () => '/docs/a')
  const rules = Array.from({ length: 200 }, (_, n) =>
    rule('deny', { [`/paths/*${'/*'.repeat(n % 3)}`]: '/etc/**' }),
  )
  const took = processorMs(() => {
    expect(decided(rules, { paths }).action).toBe('deny')
  })
  expect(took).toBeLessThan(1000)
})
