// When sandboxes are built for calls to come, and when none is any more.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SallyportError } from '../../../src/errors.ts'
import { Pools } from '../../../src/daemon/machine/pools.ts'
import { settingsFor } from '../../support/launch.ts'

const settings = await settingsFor('echo.mjs', [], { instance: 'call', pool: { size: 1 } })

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Pools of a machine on which nothing can be built, and how often it was tried. */
function poolsOf({ isHeld = false } = {}): { readonly pools: Pools; readonly tried: () => number } {
  let tries = 0
  const refuse = (): never => {
    tries += 1
    throw new SallyportError('ERR_SANDBOX_SETUP', 'nothing is built here')
  }
  const pools = new Pools({
    settings,
    profileOf: refuse,
    outfits: { forCallToCome: refuse },
    isHeld: () => isHeld,
    launchToGate: refuse,
    emit: () => {},
  })
  return { pools, tried: () => tries }
}

test('what waits for the next call is built a little after the last one began, once for all that began until then', async () => {
  const { pools, tried } = poolsOf()
  await using _ = pools
  pools.prepare('probe')
  await vi.advanceTimersByTimeAsync(19)
  pools.prepare('probe')
  expect(tried()).toBe(0)
  await vi.advanceTimersByTimeAsync(1)
  expect(tried()).toBe(1)
})

test('nothing is built of a server that was drained before', async () => {
  const { pools, tried } = poolsOf()
  await using _ = pools
  pools.prepare('probe')
  await pools.drain('probe', 'a test')
  await vi.advanceTimersByTimeAsync(1000)
  expect(tried()).toBe(0)
  pools.prepare('probe')
  await vi.advanceTimersByTimeAsync(20)
  expect(tried()).toBe(1)
})

test('nor once all of them have ended', async () => {
  const { pools, tried } = poolsOf()
  pools.prepare('probe')
  await pools[Symbol.asyncDispose]()
  await vi.advanceTimersByTimeAsync(1000)
  expect(tried()).toBe(0)
})

test('nor of one that is held as a whole, whoever still uses it', async () => {
  const { pools, tried } = poolsOf({ isHeld: true })
  await using _ = pools
  pools.prepare('probe')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(tried()).toBe(0)
})
