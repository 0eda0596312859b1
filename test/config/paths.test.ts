// Where sockets and state are: flag, variable, root's folder, the user's, the home; never relative, never too long.
import { resolve } from 'node:path'
import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { runtimeDirectory, stateDirectory } from '../../src/config/paths.ts'
import { refusal } from '../support/refusal.ts'

const noRunUser =
  Array.from({ length: 100 }, (_, index) => 61_000 + index).find((uid) => !existsSync(`/run/user/${uid}`)) ??
  0
const host = (more: { env?: Record<string, string>; uid?: number; home?: string } = {}) => ({
  env: {},
  home: '/home/u',
  uid: noRunUser,
  ...more,
})

describe('the runtime directory', () => {
  test('is the flag’s, then the variable’s, then /run/sallyport for root, else below the home', async () => {
    const env = { SALLYPORT_RUNTIME_DIR: '/from/variable' }
    expect(await runtimeDirectory('/from/flag', host({ env }))).toBe('/from/flag')
    expect(await runtimeDirectory(undefined, host({ env }))).toBe('/from/variable')
    expect(await runtimeDirectory(undefined, host({ uid: 0 }))).toBe('/run/sallyport')
    expect(await runtimeDirectory(undefined, host())).toBe('/home/u/.local/state/sallyport/run')
  })

  test('does not follow XDG variables, which hosts do not pass on', async () => {
    expect(await runtimeDirectory(undefined, host({ env: { XDG_RUNTIME_DIR: '/elsewhere' } }))).toBe(
      '/home/u/.local/state/sallyport/run',
    )
  })

  test('of a relative flag goes from here, of a relative variable is refused, an empty variable is unset', async () => {
    expect(await runtimeDirectory('run', host())).toBe(`${process.cwd()}/run`)
    expect(
      (await refusal(() => runtimeDirectory(undefined, host({ env: { SALLYPORT_RUNTIME_DIR: 'run' } }))))
        .message,
    ).toContain('expected an absolute path')
    expect(await runtimeDirectory(undefined, host({ env: { SALLYPORT_RUNTIME_DIR: '' } }))).toBe(
      '/home/u/.local/state/sallyport/run',
    )
    expect((await refusal(() => runtimeDirectory('', host()))).code).toBe('ERR_USAGE')
  })

  test.each(['run', './run', '/a/../b', '/..', '/a/..'])(
    'of a variable that leads to one place for each reader is refused: %s',
    async (said) => {
      const { code, message } = await refusal(() =>
        runtimeDirectory(undefined, host({ env: { SALLYPORT_RUNTIME_DIR: said } })),
      )
      expect(code).toBe('ERR_CONFIG_VARIABLE')
      expect(message).toContain('expected an absolute path without ..')
      expect(await runtimeDirectory(said, host())).toBe(resolve(said)) // a person's word, in one place
    },
  )

  test('has room for the longest socket in what the kernel takes, in bytes, and not one more', async () => {
    const longest = `/${'x'.repeat(107 - '/operator/operator.sock'.length - 1)}`
    expect(await runtimeDirectory(longest, host())).toBe(longest)
    const { code, message } = await refusal(() => runtimeDirectory(`${longest}x`, host()))
    expect(code).toBe('ERR_USAGE')
    expect(message).toContain('expected at most 84 bytes')
    expect((await refusal(() => runtimeDirectory(`/${'ü'.repeat(50)}`, host()))).code).toBe('ERR_USAGE')
    expect(
      (await refusal(() => runtimeDirectory(undefined, host({ home: `/${'h'.repeat(90)}` })))).code,
    ).toBe('ERR_CONFIG_VARIABLE')
  })
})

test('the state directory is the flag’s, the variable’s, root’s or below the home', async () => {
  expect(await stateDirectory('/flag', host({ env: { SALLYPORT_STATE_DIR: '/variable' } }))).toBe('/flag')
  expect(await stateDirectory(undefined, host({ env: { SALLYPORT_STATE_DIR: '/variable' } }))).toBe(
    '/variable',
  )
  expect(await stateDirectory(undefined, host({ uid: 0 }))).toBe('/var/lib/sallyport')
  expect(await stateDirectory(undefined, host())).toBe('/home/u/.local/state/sallyport')
  expect(
    (await refusal(() => stateDirectory(undefined, host({ env: { SALLYPORT_STATE_DIR: './x' } })))).code,
  ).toBe('ERR_CONFIG_VARIABLE')
})
