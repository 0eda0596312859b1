// A test of a server says how what it lists stands against what was accepted, and fails where that has changed.
import { expect, test } from 'vitest'
import type { ServerSettings } from '../../../src/schema/settings.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller, superviseAll } from '../../support/supervisor.ts'
import { tempDir } from '../../support/temp-dir.ts'

const base = serverSettings('rug-pull.mjs')

/** One life of a daemon, in which a server that begins as `from` says is tested. */
async function tested(state: string, from: readonly string[], settings: Partial<ServerSettings>) {
  const server = { ...base, args: [...base.args, '', ...from], ...settings }
  await using all = await superviseAll([server], { codeOf: () => 'code', state })
  const signal = AbortSignal.timeout(60_000)
  const { ok, steps } = await all.supervisor.test(caller(0, 'operator'), 'fixture', { signal })
  expect(steps.map(({ step }) => step)).toEqual(['launch', 'initialize', 'tools/list', 'declaration', 'stop'])
  const { detail } = steps[3] ?? { detail: '' }
  expect(steps.filter((step) => !step.ok).map(({ step }) => step)).toEqual(ok ? [] : ['declaration'])
  return { ok, detail }
}

test('that nothing was accepted yet is told, and is no failure', async () => {
  await using state = await tempDir()
  expect(await tested(state.path, [], { acceptance: 'manual' })).toEqual({
    ok: true,
    detail: 'nothing was accepted yet; see sallyport accept fixture',
  })
})

test.each<[string, readonly string[], Partial<ServerSettings>, RegExp]>([
  ['a tool that changed', ['poison'], {}, /^echo: listed otherwise than when accepted/],
  ['an undeclared tool', ['add'], {}, /surface is static/],
  [
    'one that nobody accepted',
    ['add'],
    { surface: 'dynamic', acceptance: 'manual' },
    /^added: .*not accepted/,
  ],
  ['another version', [], { version: '2' }, /version 2 .*accepted was version 1/],
])('%s fails the test of a server whose surface was accepted', async (_what, from, changed, why) => {
  await using state = await tempDir()
  const settings = { version: '1' }
  expect(await tested(state.path, [], settings)).toEqual({ ok: true, detail: 'as accepted, version 1' })
  expect(await tested(state.path, [], settings)).toEqual({ ok: true, detail: 'as accepted, version 1' })
  expect(await tested(state.path, from, { ...settings, ...changed })).toEqual({
    ok: false,
    detail: expect.stringMatching(why) as string,
  })
})

test('a declaration about what the server does not list fails its test, accepted or not', async () => {
  await using state = await tempDir()
  const gone = {
    name: 'gone',
    version: '1',
    parameters: { type: 'object' },
    sideEffects: ['read'],
    resourceScopes: [],
    credentials: [],
    output: null,
    idempotency: 'unknown',
    failureModes: [],
    surfaceDigest: null,
  } as const
  expect(await tested(state.path, [], { declaration: { gone }, acceptance: 'manual' })).toEqual({
    ok: false,
    detail: expect.stringContaining('it lists no tool of that name') as string,
  })
})
