// Lines that people write: every form is read, and what is none says what was meant.
import { describe, expect, test } from 'vitest'
import { assertionForms, parseAssertion } from '../../src/schema/assertion.ts'

const parsed = (text: string): unknown => {
  const result = parseAssertion(text)
  return result.ok ? result.assertion : result.problem
}

describe('is read:', () => {
  test.each([
    ['cannot read /etc/shadow', { about: 'read', isAllowed: false, path: '/etc/shadow' }],
    ['cannot read /home/*/a b/**', { about: 'read', isAllowed: false, path: '/home/*/a b/**' }],
    ['can write /workspace/x', { about: 'write', isAllowed: true, path: '/workspace/x' }],
    ['cannot exec /usr/bin/*', { about: 'exec', isAllowed: false, path: '/usr/bin/*' }],
    [
      'cannot connect 169.254.169.254:80',
      { about: 'connect', isAllowed: false, host: '169.254.169.254', port: 80 },
    ],
    ['cannot connect [::1]:5432', { about: 'connect', isAllowed: false, host: '::1', port: 5432 }],
    [
      'can connect API.example.com:443',
      { about: 'connect', isAllowed: true, host: 'api.example.com', port: 443 },
    ],
    ['cannot resolve example.com', { about: 'resolve', isAllowed: false, host: 'example.com' }],
    ['cannot see env AWS_*', { about: 'env', name: 'AWS_*' }],
    ['cannot exceed memory', { about: 'exceed', limit: 'memory' }],
    ['cannot call delete_*', { about: 'call', tool: 'delete_*' }],
    ['must ask write_file', { about: 'ask', tool: 'write_file' }],
  ])('%s', (text, assertion) => {
    expect(parsed(text)).toEqual(assertion)
  })

  test('every form that messages and docs name', () => {
    const examples: readonly (readonly [string, string])[] = [
      ['PATH', '/x'],
      ['HOST:PORT', 'a.example:1'],
      ['env NAME', 'env A_B'],
      ['resolve NAME', 'resolve a.example'],
      ['TOOL', 't'],
      ['memory|pids|files|disk', 'pids'],
    ]
    for (const form of assertionForms) {
      const text = examples.reduce<string>((line, [word, value]) => line.replace(word, value), form)
      expect([text, parseAssertion(text).ok]).toEqual([text, true])
    }
  })
})

describe('is refused, with what was meant:', () => {
  test.each([
    ['', 'nothing', 'a line that begins one of cannot, can, must', null],
    ['cant read /x', '"cant read /x"', 'a line that begins one of', 'did you mean can?'],
    ['cannot raed /x', '"cannot raed /x"', '`cannot` with one of read, write', 'did you mean read?'],
    ['must read /x', '"must read /x"', '`must` with one of ask', null],
    ['can exceed memory', '"can exceed memory"', '`can` with one of', null],
    [
      'cannot exceed memori',
      '"cannot exceed memori"',
      'one of memory, pids, files, disk',
      'did you mean memory?',
    ],
    ['cannot read etc/shadow', '"etc/shadow"', 'cannot read and an absolute path', null],
    ['cannot read /a/../b', '"/a/../b"', 'without `..`', null],
    ['cannot read', 'nothing', 'an absolute path', null],
    ['cannot read  /x', '" /x"', 'an absolute path', null],
    ['cannot connect example.com', '"example.com"', 'HOST:PORT', null],
    ['cannot connect example.com:70000', '"example.com:70000"', 'HOST:PORT', null],
    ['cannot resolve *.example.com', '"*.example.com"', 'a host name', null],
    ['cannot see AWS_KEY', '"AWS_KEY"', 'cannot see env', null],
    ['must ask a tool', '"a tool"', 'a tool’s name or glob', null],
  ])('%s', (text, got, expected, mend) => {
    expect(parsed(text)).toEqual({ got, expected: expect.stringContaining(expected), mend })
  })
})
