// `${env:NAME}`: replaced, or an error that says so; never an empty string by surprise, never a secret under another name.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { resolveVariable, variableText } from '../../src/config/variable.ts'

const env = { REGION: 'eu', EMPTY: '', GITHUB_TOKEN: 'secret', NESTED: '${env:REGION}' }
const resolved = (value: string, more: { default?: string; override?: string } = {}) =>
  resolveVariable({ value, default: more.default ?? null, override: more.override ?? null }, env)

test.each([
  ['plain', 'plain'],
  ['${env:REGION}', 'eu'],
  ['a-${env:REGION}-${env:REGION}', 'a-eu-eu'],
  ['${env:EMPTY}', ''],
  ['$${env:REGION}', '${env:REGION}'],
  ['$REGION $(x) {y}', '$REGION $(x) {y}'],
  ['${env:NESTED}', '${env:REGION}'],
])('%s becomes %s', (written, value) => {
  expect(resolved(written)).toEqual({ state: 'value', value })
})

test('an unset variable is an error that names it, unless there is a default', () => {
  expect(resolved('${env:ABSENT}')).toEqual({ state: 'unset', name: 'ABSENT' })
  expect(resolved('${env:ABSENT}', { default: 'eu' })).toEqual({ state: 'value', value: 'eu' })
  expect(resolved('${env:constructor}')).toEqual({ state: 'unset', name: 'constructor' })
})

test('a secret is refused under every name, without an override', () => {
  expect(resolved('${env:GITHUB_TOKEN}')).toMatchObject({ state: 'refused', name: 'GITHUB_TOKEN' })
  expect(resolved('${env:GITHUB_TOKEN}', { override: 'why' })).toEqual({ state: 'value', value: 'secret' })
})

test.each(['${HOME}', '${env:}', '${env:1A}', '${env:A B}', '${', '${env:REGION', '${ENV:REGION}'])(
  '%s is malformed',
  (written) => {
    expect(resolved(written).state).toBe('malformed')
  },
)

test('a text without ${ is itself', () => {
  fc.assert(
    fc.property(
      fc.string().filter((text) => !text.includes('${')),
      (text) => {
        expect(resolveVariable(variableText(text), {})).toEqual({ state: 'value', value: text })
      },
    ),
  )
})
