// A test of a server says how what it lists stands against what was accepted, and fails where that has changed.
import { expect, test } from 'vitest'
import type { ServerSettings } from '../../../src/schema/settings.ts'
import { eventually } from '../../support/eventually.ts'
import { handled } from '../../support/handled.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller, superviseAll } from '../../support/supervisor.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { patienceMs } from '../../support/patience.ts'

const base = serverSettings('rug-pull.mjs')

/** One life of a daemon, in which a server that begins as `from` says is tested. */
async function tested(state: string, from: readonly string[], settings: Partial<ServerSettings>) {
  const server = { ...base, args: [...base.args, '', ...from], ...settings }
  await using all = await superviseAll([server], { codeOf: () => 'code', state })
  const signal = AbortSignal.timeout(patienceMs)
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

test('a test of a server that dies at its start says where its last words are', async () => {
  await using all = await superviseAll([serverSettings('crash-at-start.mjs')])
  const operator = caller(0, 'operator')
  const { steps } = await all.supervisor.test(operator, 'fixture', {
    signal: AbortSignal.timeout(patienceMs),
  })
  expect(steps.map(({ step, ok, detail }) => [step, ok, detail])).toEqual([
    ['launch', true, expect.stringMatching(/^pid \d+$/)],
    ['initialize', false, 'it exited with status 1; see sallyport logs fixture'],
    ['stop', true, 'it exited with status 1 before it was ready'],
  ])
  const { lines } = all.supervisor.logs(operator, 'fixture', 1, false)
  expect(lines).toEqual(['cannot start: a needed file is missing'])
})

test.each(['quarantined', 'removed', 'replaced', 'stopped by its operator'])(
  'a test and a look end with a server that is %s',
  async (how) => {
    await using all = await superviseAll([serverSettings('never-initialize.mjs')])
    const { supervisor } = all
    const operator = caller(0, 'operator')
    const signal = new AbortController().signal // nobody else calls them off
    const tested = handled(supervisor.test(operator, 'fixture', { signal }))
    const looked = supervisor.look(operator, 'fixture', { signal }).catch((error: unknown) => error)
    const inState = (state: string) =>
      all.events.filter(({ type, detail }) => type === 'instance/state' && detail['to'] === state).length
    await eventually(() => inState('starting') === 2 && all.launches() === 2)
    if (how === 'quarantined') await supervisor.quarantine('fixture', 'a test')
    else if (how === 'removed') await supervisor.remove(operator, 'fixture')
    else if (how === 'replaced') await supervisor.replace('fixture', null, 'it was taken out')
    else await supervisor.stop(operator, 'fixture')
    // Nothing of them is left once that is done, long before they would have waited for an answer no more.
    expect(inState('stopped')).toBe(2)
    expect(await looked).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
    const { ok, steps } = await tested
    expect([ok, steps.filter((step) => !step.ok).length]).toEqual([false, 1])
    expect(JSON.stringify(steps)).not.toContain('sallyport logs')
  },
)
