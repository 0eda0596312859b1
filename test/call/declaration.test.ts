// What a draft says that a tool may do: the worst that its sandbox allows, less what the server claims.
import { expect, test } from 'vitest'
import { draftDeclaration, type SideEffect } from '../../src/call/declaration.ts'

const all = (): boolean => true
const none = (): boolean => false

test.each<[string, object, (effect: SideEffect) => boolean, readonly SideEffect[]]>([
  ['no annotations', {}, all, ['read', 'write', 'execute', 'network']],
  ['no annotations, in a sandbox without either', {}, none, ['read', 'write']],
  [
    'no annotations, in a sandbox without exec',
    {},
    (effect) => effect !== 'execute',
    ['read', 'write', 'network'],
  ],
  ['openWorldHint: false', { openWorldHint: false }, all, ['read', 'write', 'execute']],
  ['readOnlyHint: false', { readOnlyHint: false }, all, ['read', 'write', 'execute', 'network']],
  ['readOnlyHint: true', { readOnlyHint: true }, all, ['read', 'network']],
  ['readOnlyHint: "true", which claims nothing', { readOnlyHint: 'true' }, none, ['read', 'write']],
])('a tool with %s is drafted as that', (_what, annotations, isPossible, effects) => {
  expect(draftDeclaration({ name: 'tool', annotations }, isPossible).sideEffects).toEqual(effects)
})
