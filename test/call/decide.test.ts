import fc from 'fast-check'
import { expect, test } from 'vitest'
import { gateOf } from '../../src/call/gate.ts'
import type { Decision, GovernedRequest } from '../../src/schema/gate.ts'
import type { Action, Rule, ServerSettings } from '../../src/schema/settings.ts'

const rule = (permission: string, action: Action, where: Rule['where'] = {}): Rule => ({
  permission,
  action,
  where,
  origin: `${permission}=${action}`,
})

const server = (more: Partial<ServerSettings> = {}): GovernedRequest['server'] => ({
  name: 'files',
  file: 'sallyport.yaml',
  scope: 'user',
  trust: 'trusted',
  tools: { allow: [], deny: [], readOnly: [] },
  ...more,
})

const ask = (rules: readonly Rule[], tool: string, args: unknown = {}, who = server()): Decision =>
  gateOf(rules).decide({
    server: who,
    kind: tool.includes('/') ? 'method' : 'tool',
    subject: tool,
    arguments: args,
  })

test.each([
  [[], 'read', 'ask'],
  [[rule('mcp:*:*', 'allow')], 'read', 'allow'],
  [[rule('mcp:files:read_*', 'allow')], 'read_file', 'allow'],
  [[rule('mcp:files:read_*', 'allow')], 'write_file', 'ask'],
  [[rule('mcp:other:*', 'allow')], 'read', 'ask'],
  [[rule('mcp:*:*', 'allow'), rule('mcp:files:read', 'deny')], 'read', 'deny'],
  [[rule('mcp:*:*', 'ask'), rule('mcp:files:read', 'allow')], 'read', 'ask'],
  [[rule('mcp:files:resources/read', 'allow')], 'resources/read', 'allow'],
  [[rule('mcp:files:tasks/*', 'allow')], 'tasks/get', 'allow'],
  [[rule('read', 'allow')], 'read', 'ask'],
] as const)('rules %#: %j', (rules, tool, action) => {
  expect(ask(rules, tool).action).toBe(action)
})

test('a condition on the arguments narrows a rule', () => {
  const rules = [rule('mcp:files:read', 'allow', { '/path': '/docs/**' })]
  expect(ask(rules, 'read', { path: '/docs/a/b' }).action).toBe('allow')
  expect(ask(rules, 'read', { path: '/etc/passwd' }).action).toBe('ask')
  expect(ask(rules, 'read', { path: '/docs/../etc/passwd' }).action).toBe('ask')
  expect(ask(rules, 'read', { path: ['/docs/a'] }).action).toBe('ask')
  expect(ask(rules, 'read', {}).action).toBe('ask')
})

test('where a denial cannot be told from the arguments, it denies', () => {
  const rules = [rule('mcp:*:*', 'allow'), rule('mcp:files:read', 'deny', { '/path': '/secret/**' })]
  expect(ask(rules, 'read', { path: '/docs/a' }).action).toBe('allow')
  for (const path of [
    '/secret/a',
    '/docs/../secret/a',
    '/docs//a',
    '/docs/./a',
    1,
    null,
    undefined,
    '\ud800',
  ]) {
    expect(ask(rules, 'read', { path }).action).toBe('deny')
  }
})

test('a slash in a text takes it out of no denial and into no permission', () => {
  const rules = [rule('mcp:*:*', 'allow'), rule('mcp:files:read', 'deny', { '/path': 'rm *' })]
  expect(ask(rules, 'read', { path: 'ls' }).action).toBe('allow')
  expect(ask(rules, 'read', { path: 'rm -rf x' }).action).toBe('deny')
  expect(ask(rules, 'read', { path: 'rm -rf /' }).action).toBe('deny')
  const allow = [rule('mcp:files:read', 'allow', { '/path': 'ls *' })]
  expect(ask(allow, 'read', { path: 'ls x' }).action).toBe('allow')
  expect(ask(allow, 'read', { path: 'ls /' }).action).toBe('ask')
})

test.each(['file:///docs/%2e%2e/secret/a', 'file:///%73ecret/a', 'FILE:///secret/a', 'file:/secret/a'])(
  'what some readers take for another URI is denied as that, and not allowed as this: %s',
  (uri) => {
    const allow = [rule('mcp:files:read', 'allow', { '/uri': 'file:///docs/**' })]
    expect(ask(allow, 'read', { uri: 'file:///docs/a%20b' }).action).toBe('allow')
    expect(ask(allow, 'read', { uri }).action).toBe('ask')
    const deny = [rule('mcp:*:*', 'allow'), rule('mcp:files:read', 'deny', { '/uri': 'file:///secret/**' })]
    expect(ask(deny, 'read', { uri: 'file:///docs/a%20b' }).action).toBe('allow')
    expect(ask(deny, 'read', { uri }).action).toBe('deny')
  },
)

test.each(['Path', 'PATH', 'ｐath', 'path\0'])(
  'a key %j beside the one that a rule reads is ambiguous',
  (key) => {
    const rules = [rule('mcp:files:read', 'allow', { '/path': '/docs/**' })]
    expect(ask(rules, 'read', { path: '/docs/a', [key]: '/etc' })).toMatchObject({
      action: 'deny',
      code: 'ERR_MESSAGE_AMBIGUOUS',
    })
  },
)

test('a pointer reads own members only', () => {
  const rules = [rule('mcp:files:read', 'allow', { '/constructor/name': 'Object' })]
  expect(ask(rules, 'read', {}).action).toBe('ask')
  const escaped = [rule('mcp:files:read', 'allow', { '/a~1b/0/~0': 'x' })]
  expect(ask(escaped, 'read', { 'a/b': [{ '~': 'x' }] }).action).toBe('allow')
})

test('the lists of a server stand above the rules', () => {
  const rules = [rule('mcp:*:*', 'allow')]
  const narrow = server({ tools: { allow: ['read_*'], deny: ['read_secret'], readOnly: [] } })
  expect(ask(rules, 'read_file', {}, narrow).action).toBe('allow')
  expect(ask(rules, 'read_secret', {}, narrow)).toMatchObject({
    action: 'deny',
    rule: 'sallyport.yaml servers.files.tools.deny[0]',
    reason: 'sallyport.yaml servers.files.tools.deny[0] denies read_secret',
  })
  expect(ask(rules, 'write', {}, narrow)).toMatchObject({
    action: 'deny',
    rule: 'sallyport.yaml servers.files.tools.allow',
  })
})

test('a sandboxed server exposes the tools of its list and nothing else', () => {
  const rules = [rule('mcp:*:*', 'allow')]
  const none = server({ trust: 'sandboxed' })
  const one = server({ trust: 'sandboxed', tools: { allow: ['read'], deny: [], readOnly: [] } })
  expect(ask(rules, 'read', {}, none)).toMatchObject({
    action: 'deny',
    rule: 'sallyport.yaml servers.files.trust',
  })
  expect(ask(rules, 'read', {}, one).action).toBe('allow')
  expect(ask(rules, 'resources/read', {}, one).action).toBe('deny')
})

test('for an untrusted server only a rule that names the tool exactly allows', () => {
  const who = server({ trust: 'untrusted' })
  expect(ask([rule('mcp:files:*', 'allow')], 'read', {}, who).action).toBe('ask')
  expect(ask([rule('mcp:*:read', 'allow')], 'read', {}, who).action).toBe('ask')
  expect(ask([rule('mcp:files:read', 'allow')], 'read', {}, who).action).toBe('allow')
  expect(ask([rule('mcp:files:resources/*', 'allow')], 'resources/read', {}, who).action).toBe('ask')
})

test('of a server that a host launched under a name of its choice a rule for exactly its tool is one of a pattern', () => {
  const who = (trust: ServerSettings['trust']) =>
    server({ trust, scope: 'dynamic', tools: { allow: ['read'], deny: [], readOnly: [] } })
  const rules = [rule('mcp:files:read', 'allow')]
  const untrusted = ask(rules, 'read', {}, who('untrusted'))
  expect(untrusted).toMatchObject({ action: 'ask', reason: expect.stringContaining('a host launched it') })
  expect(untrusted.reason).not.toContain('would stand')
  for (const trust of ['trusted', 'sandboxed'] as const)
    expect(ask(rules, 'read', {}, who(trust)).action).toBe('allow')
  const gate = gateOf(rules)
  const request = { server: who('untrusted'), kind: 'tool', subject: 'read', arguments: {} } as const
  expect(gate.decide(request, true).action).toBe('allow')
})

test.each(['', 'a b', 'a/b\n', 'é', 'x'.repeat(129), 'a:b'])('a tool called %j is never allowed', (tool) => {
  const decision = gateOf([rule('mcp:*:*', 'allow')]).decide({
    server: server(),
    kind: 'tool',
    subject: tool,
    arguments: {},
  })
  expect(decision.action).toBe('deny')
})

const anyRule = fc.record({
  permission: fc.constantFrom(
    'mcp:*:*',
    'mcp:files:*',
    'mcp:files:read',
    'mcp:files:r*',
    'mcp:x:*',
    'mcp:*:write',
  ),
  action: fc.constantFrom<Action>('allow', 'ask', 'deny'),
  where: fc.constantFrom<Rule['where']>({}, { '/path': '/docs/**' }, { '/path': '*' }, { '/a/b': 'x' }),
  origin: fc.constant('r'),
})
const anyServer = fc
  .record({
    trust: fc.constantFrom<ServerSettings['trust']>('trusted', 'untrusted', 'sandboxed'),
    allow: fc.subarray(['read', 'r*', '*']),
    deny: fc.subarray(['write', 'x']),
  })
  .map(({ trust, allow, deny }) => server({ trust, tools: { allow, deny, readOnly: [] } }))
const anyArguments = fc.constantFrom<unknown>(
  {},
  { path: '/docs/a' },
  { path: '/docs/../x' },
  { path: 1 },
  { a: { b: 'x' } },
  { Path: 'x' },
)
const anyTool = fc.constantFrom('read', 'write', 'resources/read')

test('adding a denial never allows more', () => {
  fc.assert(
    fc.property(
      fc.array(anyRule),
      fc.nat(),
      anyRule,
      anyTool,
      anyArguments,
      anyServer,
      (rules, at, extra, tool, args, who) => {
        const more = rules.toSpliced(at % (rules.length + 1), 0, { ...extra, action: 'deny' })
        if (ask(rules, tool, args, who).action !== 'allow')
          expect(ask(more, tool, args, who).action).not.toBe('allow')
      },
    ),
    { numRuns: 2000 },
  )
})

test('what is hidden is never allowed', () => {
  fc.assert(
    fc.property(
      fc.array(anyRule),
      fc.constantFrom('read', 'write'),
      anyArguments,
      anyServer,
      (rules, tool, args, who) => {
        if (!gateOf(rules).lists(who, tool)) expect(ask(rules, tool, args, who).action).toBe('deny')
      },
    ),
    { numRuns: 2000 },
  )
})

test('a prompt or resource that is hidden is never allowed, whatever else is asked of it', () => {
  fc.assert(
    fc.property(fc.array(anyRule), anyArguments, anyServer, (rules, args, who) => {
      const known = Object.fromEntries(
        Object.entries(Object(args)).filter(
          (entry): entry is [string, string] => typeof entry[1] === 'string',
        ),
      )
      const isHidden = gateOf(rules).hides(who, 'resources/read')
      if (isHidden?.(known) === true) expect(ask(rules, 'resources/read', args, who).action).toBe('deny')
    }),
    { numRuns: 2000 },
  )
})

test('a decision that is remembered is the one that would be made', () => {
  fc.assert(
    fc.property(
      fc.array(anyRule),
      fc.array(fc.tuple(anyTool, anyArguments)),
      anyServer,
      (rules, asked, who) => {
        const gate = gateOf(rules)
        for (const [tool, args] of asked) {
          const kind = tool.includes('/') ? 'method' : 'tool'
          expect(gate.decide({ server: who, kind, subject: tool, arguments: args })).toEqual(
            ask(rules, tool, args, who),
          )
        }
      },
    ),
  )
})

test('whatever is allowed has a rule that says so', () => {
  fc.assert(
    fc.property(fc.array(anyRule), anyTool, anyArguments, anyServer, (rules, tool, args, who) => {
      const { action, rule: origin, code } = ask(rules, tool, args, who)
      expect(code === null).toBe(action === 'allow')
      if (action === 'allow') expect(origin).not.toBe(null)
    }),
  )
})
